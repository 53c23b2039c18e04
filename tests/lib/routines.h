/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's shared library as queryprof calls it: by the table of routines that the library gives to an
 * extension.
 */
#ifndef TESTS_LIB_ROUTINES_H
#define TESTS_LIB_ROUTINES_H

#include <dlfcn.h>

#include "sqlite/library/host.h"

static sqlite3_api_routines routines;

static int routines_take(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db, (void)error;
	routines = *api;
	return SQLITE_OK;
}

static sqlite3 *routines_open(void)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
	int (*add)(void (*)(void)), (*open)(const char *, sqlite3 **), (*reset)(void);
	sqlite3 *db;

	assert_non_null(library);
	*(void **)&add = dlsym(library, "sqlite3_auto_extension");
	*(void **)&open = dlsym(library, "sqlite3_open");
	*(void **)&reset = dlsym(library, "sqlite3_reset_auto_extension");
	assert_int_equal(add((void (*)(void))routines_take), SQLITE_OK);
	assert_int_equal(open(":memory:", &db), SQLITE_OK);
	reset();
	return db;
}

#endif
