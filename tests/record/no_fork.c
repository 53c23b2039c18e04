/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: fork() fails.
 */
#include <errno.h>
#include <sys/types.h>

__attribute__((visibility("default"))) pid_t fork(void)
{
	errno = EAGAIN;
	return -1;
}
