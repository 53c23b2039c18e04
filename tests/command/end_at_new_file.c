/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: sends SIGTERM to a process that makes a file by mkostemp(), as soon as the file exists and
 * before mkostemp() returns.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int mkostemp(char *path, int flags)
{
	int (*next)(char *, int) = (int (*)(char *, int))dlsym(RTLD_NEXT, "mkostemp");
	int fd = next(path, flags);

	raise(SIGTERM);
	return fd;
}
