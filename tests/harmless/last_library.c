/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a statement on the program's connection in its destructor. Each copy has its own name, which the
 * statement contains. If requested, the copy that was loaded later ends the process there.
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
