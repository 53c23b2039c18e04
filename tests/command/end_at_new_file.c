/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: a process that makes a file by mkostemp() is sent SIGTERM as soon as the file
 * is there, and before he knows.
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
