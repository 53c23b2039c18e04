/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a statement of the program's connection in its destructor. Each copy has a name of its own, which the
 * statement shows. The copy that is loaded later ends the process there if it is told to.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void (*run)(const char *mark);

__attribute__((destructor)) static void end(void)
{
	const char *status = getenv("QUERYPROF_TEST_END_AFTER");
	const char *name;
	Dl_info info;

	*(void **)&run = dlsym(RTLD_DEFAULT, "run_last");
	if (!run || !dladdr((void *)end, &info))
		return;
	name = strrchr(info.dli_fname, '/') + 1;
	run(name);
	if (status && !strcmp(name, "after.so"))
		_exit(atoi(status));
}
