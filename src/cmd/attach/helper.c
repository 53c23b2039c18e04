/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void *helper_memory(size_t size)
{
	void *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Neither the terminal nor the end of the command's process group stops it halfway. */
static _Noreturn void become_helper(void (*work)(void *context), void *context)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "queryprof: stop");
	/* A thread remains stopped while this process waits for a processor. Only root may raise the
	 * priority. */
	setpriority(PRIO_PROCESS, 0, PRIO_MIN);
	work(context);
	_exit(0);
}

bool helper_run(void (*work)(void *context), void *context)
{
	const pid_t child = fork();
	int status = -1;

	if (child == 0)
		become_helper(work, context);
	if (child < 0)
		return false;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	errno = 0;
	return status == 0;
}
