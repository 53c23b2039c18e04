/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ui/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 65536

static _Noreturn void keep(int ended, bool may_say, void (*clean_up)(const void *context),
                           const void *context)
{
	const long most = sysconf(_SC_OPEN_MAX);
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "queryprof: keep");
	dup2(ended, STDIN_FILENO);
	for (int fd = most < DESCRIPTORS_MAX ? (int)most : DESCRIPTORS_MAX; --fd > STDIN_FILENO;)
		if (!may_say || fd != STDERR_FILENO)
			close(fd);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	clean_up(context);
	_exit(0);
}

bool keeper_start(struct keeper *keeper, bool may_say, void (*clean_up)(const void *context),
                  const void *context)
{
	int ends[2];

	keeper->alive = -1;
	if (pipe2(ends, O_CLOEXEC))
		return false;
	keeper->pid = fork();
	if (keeper->pid == 0)
		keep(ends[0], may_say, clean_up, context);
	close(ends[0]);
	if (keeper->pid < 0) {
		const int error = errno;

		close(ends[1]);
		errno = error;
		return false;
	}
	keeper->alive = ends[1];
	return true;
}

void keeper_clean_up(struct keeper *keeper)
{
	if (keeper->alive < 0)
		return;
	close(keeper->alive);
	keeper->alive = -1;
	while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void keeper_dismiss(struct keeper *keeper)
{
	if (keeper->alive >= 0)
		kill(keeper->pid, SIGKILL);
	keeper_clean_up(keeper);
}
