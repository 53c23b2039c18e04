/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/push/background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vector.h"
#include "cmd/ui/complain.h"

static pid_t pusher;

/* Ctrl+C is meant for the recorded program, and the push ends after that program. The push is not
 * recorded. */
static int start(char **argv, bool quiet)
{
	VECTOR(char *) environment = { .items = NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t ending;
	bool fine = true;
	int error;

	for (char **variable = environ; fine && *variable; variable++)
		if (strncmp(*variable, "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
			fine = vector_push(&environment, *variable);
	if (!fine || !vector_push(&environment, NULL)) {
		vector_free(&environment);
		return ENOMEM;
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (quiet)
		posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	/* All signals may wait here, because SIGTERM may arrive before push is ready for it. */
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	posix_spawnattr_setsigmask(&attributes, &ending);
	error = posix_spawn(&pusher, "/proc/self/exe", &files, &attributes, argv, environment.items);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	vector_free(&environment);
	return error;
}

bool push_background_start(const char *trace_file, const char *url, bool quiet)
{
	char *argv[] = { (char *)"queryprof",
		         (char *)"push",
		         (char *)"--follow",
		         (char *)"--",
		         (char *)trace_file,
		         (char *)url,
		         NULL };
	int error = start(argv, quiet);

	if (!error)
		return true;
	pusher = 0;
	complain("record: push cannot be started: %s", strerror(error));
	return false;
}

static void end(int signal)
{
	if (!pusher)
		return;
	kill(pusher, signal);
	waitpid(pusher, NULL, 0);
	pusher = 0;
}

void push_background_end(void)
{
	end(SIGTERM);
}

void push_background_cancel(void)
{
	end(SIGKILL);
}
