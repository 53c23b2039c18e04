/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: fork() fails; with NO_FORK_SINCE in the environment, since that file exists.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) pid_t fork(void)
{
	pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
	const char *since = getenv("NO_FORK_SINCE");

	if (since && access(since, F_OK))
		return next();
	errno = EAGAIN;
	return -1;
}
