/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command as on an old kernel: old_kernel COMMAND [ARGUMENT]... System calls and flags newer than
 * Linux 4.17 fail as they do there. Of those, rseq is optional even in later kernels.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SKIPPED 77
#define FIRST_NEWER SYS_rseq /* newer calls have higher numbers */
#define X32 0x40000000
#define NOEXEC_SEAL 8 /* MFD_NOEXEC_SEAL, Linux 6.3 */

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
		ALLOW,
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_NEWER, 0, 1),
		FAIL(ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
		ALLOW,
		LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NOEXEC_SEAL, 0, 1),
		FAIL(EINVAL),
		ALLOW,
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (argc < 2) {
		fprintf(stderr, "usage: old_kernel COMMAND [ARGUMENT]...\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "old_kernel: no seccomp filter here: %s\n", strerror(errno));
		return SKIPPED;
	}
	if (syscall(SYS_rseq, NULL, 0, 0, 0) != -1 || errno != ENOSYS) {
		fprintf(stderr, "old_kernel: the filter does nothing\n");
		return 1;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "old_kernel: %s: %s\n", argv[1], strerror(errno));
	return 1;
}
