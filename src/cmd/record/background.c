/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/record/recording.h"

static pid_t processes[BACKGROUNDS];

/* Ctrl+C is meant for the recorded program, so the process has a group of its own. It is not recorded. */
static _Noreturn void become(const char *const *argv, bool quiet, pid_t parent)
{
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t ending;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	unsetenv("LD_PRELOAD");
	/* Processes that have it are waited for. */
	unsetenv("QUERYPROF_RECORD");
	/* All signals may be blocked here. SIGTERM waits, because it may come before the process is ready. */
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigprocmask(SIG_SETMASK, &ending, NULL);
	if (getppid() == parent && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
	    dup2(quiet ? nothing : STDERR_FILENO, STDOUT_FILENO) >= 0)
		execv("/proc/self/exe", (char **)argv);
	_exit(COMMAND_FAILED);
}

bool background_start(enum background which, const char *const *argv, bool quiet)
{
	const pid_t parent = getpid();

	processes[which] = fork();
	if (processes[which] == 0)
		become(argv, quiet, parent);
	if (processes[which] > 0)
		return true;
	processes[which] = 0;
	complain("%s: %s cannot be started: %s", recording_command, argv[1], strerror(errno));
	return false;
}

static void end(enum background which, int signal)
{
	if (!processes[which])
		return;
	kill(processes[which], signal);
	while (waitpid(processes[which], NULL, 0) < 0 && errno == EINTR)
		;
	processes[which] = 0;
}

void background_end(enum background which)
{
	end(which, SIGTERM);
}

static sigset_t ending_signals(void)
{
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigaddset(&ending, SIGQUIT);
	sigaddset(&ending, SIGCHLD);
	return ending;
}

void background_hold_signals(void)
{
	const sigset_t ending = ending_signals();

	sigprocmask(SIG_BLOCK, &ending, NULL);
}

void background_wait(enum background which)
{
	const sigset_t awaited = ending_signals();

	background_hold_signals();
	while (processes[which] && waitpid(processes[which], NULL, WNOHANG) == 0) {
		const int signal = sigwaitinfo(&awaited, NULL);

		if (signal > 0 && signal != SIGCHLD)
			end(which, SIGTERM);
	}
	processes[which] = 0;
}

void background_cancel(void)
{
	for (int which = 0; which < BACKGROUNDS; which++)
		end(which, SIGKILL);
}
