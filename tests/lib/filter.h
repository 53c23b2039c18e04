/* SPDX-License-Identifier: Apache-2.0 */
/* A seccomp filter that permits all system calls, for the calling thread and threads that it starts. */
#ifndef TESTS_LIB_FILTER_H
#define TESTS_LIB_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>

static inline bool filter_system_calls(void)
{
	struct sock_filter pass[] = { { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } };
	struct sock_fprog filter = { 1, pass };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

#endif
