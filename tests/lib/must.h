/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite calls that must not fail. If one does, the program prints the error and exits with status 2.
 */
#ifndef TESTS_LIB_MUST_H
#define TESTS_LIB_MUST_H

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

/* `rc` is the result of a call on `db` (NULL: of none), `what` the call in words, or its SQL. */
static inline void must(sqlite3 *db, int rc, const char *what)
{
	if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE)
		return;
	fprintf(stderr, "%s: %d %s\n", what, rc, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
	exit(2);
}

/* Runs all of `sql`. */
static inline void must_exec(sqlite3 *db, const char *sql)
{
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

/* Loads queryprof's library as an extension. */
static inline void must_load(sqlite3 *db, const char *library)
{
	char *error = NULL;

	must(db, sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL), "enable extensions");
	if (sqlite3_load_extension(db, library, "sqlite3_queryprof_init", &error) == SQLITE_OK)
		return;
	fprintf(stderr, "%s: %s\n", library, error ? error : "no message");
	exit(2);
}

#endif
