/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: a process that opens /proc/PID/environ of the process HELD_PROCESS sleeps uninterruptibly,
 * as it would if HELD_PROCESS were inside an exec() that waits for a file server. vfork() sleeps in this way
 * until its child ends.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *) =
		(FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
	const char *held = getenv("HELD_PROCESS");
	char environment[64];

	snprintf(environment, sizeof(environment), "/proc/%s/environ", held ? held : "");
	if (held && strcmp(path, environment) == 0 && vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return next(path, mode);
}
