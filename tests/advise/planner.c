/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of SQLite that plans otherwise than the system's, whose functions it has: without automatic
 * indexes.
 */
#include <dlfcn.h>
#include <sqlite3.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs)
{
	__typeof__(sqlite3_open_v2) *open =
		(__typeof__(sqlite3_open_v2) *)dlsym(RTLD_NEXT, "sqlite3_open_v2");
	const int code = open(path, db, flags, vfs);

	return code ? code : sqlite3_exec(*db, "PRAGMA automatic_index = 0", NULL, NULL, NULL);
}
