/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module that depends on deep_library.c, and looks up its function by name.
 */
#include <dlfcn.h>

#define OURS __attribute__((visibility("default")))

int sqlite3_step(void *stmt);
OURS void *find_step(void);
OURS void *own_step(void);

void *find_step(void)
{
	void *volatile found = dlsym(RTLD_DEFAULT, "sqlite3_step");

	return found;
}

void *own_step(void)
{
	return (void *)sqlite3_step;
}
