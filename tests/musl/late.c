/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the library host.so from its folder, which needs SQLite, and runs it with the arguments of host.c.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
	int (*run)(int, char **);
	const char *left = dlerror();
	void *handle = dlopen(LIBRARY, RTLD_NOW);

	if (!handle || left || (left = dlerror())) {
		fprintf(stderr, "%s\n", left ? left : dlerror());
		return 1;
	}
	*(void **)&run = dlsym(handle, "host_main");
	return run(count, arguments);
}
