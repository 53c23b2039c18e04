/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: a process that opens /proc/PID/environ of the process HELD_PROCESS sleeps uninterruptibly,
 * as it would if HELD_PROCESS were inside an exec() that waits for a file server. vfork() sleeps in this way
 * until its child ends.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	const char *held = getenv("HELD_PROCESS");
	char environment[64];
	va_list arguments;
	mode_t mode;

	snprintf(environment, sizeof(environment), "/proc/%s/environ", held ? held : "");
	if (held && strcmp(path, environment) == 0 && vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return next(path, flags, mode);
}
