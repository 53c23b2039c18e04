/* SPDX-License-Identifier: Apache-2.0 */
/* A module that runs statements, with a static SQLite that it exports, or with another module's SQLite. NAME
 * is part of its statements. */
#include <sqlite3.h>
#include <stddef.h>

#ifdef PROTECTED
#pragma GCC visibility push(protected)
int sqlite3_open(const char *, sqlite3 **);
int sqlite3_prepare_v2(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
int sqlite3_step(sqlite3_stmt *);
int sqlite3_exec(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
#pragma GCC visibility pop
#endif

/* The text of SQLite's version is exported, so all objects of a process use the text of the first one. */
#ifdef TEXT
__attribute__((visibility("default"))) const char module_text[] = TEXT;
#endif
#ifdef OWN_LIBVERSION
const char *sqlite3_libversion(void)
{
	return module_text;
}
#endif

__attribute__((visibility("default"))) int module_run(int count);

int module_run(int count)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;
	int rc = sqlite3_open(":memory:", &db);

	if (!rc)
		rc = sqlite3_exec(db, "CREATE TABLE " NAME "(a); SELECT count(*) FROM " NAME, NULL, NULL,
		                  NULL);
	if (!rc)
		rc = sqlite3_prepare_v2(db, "INSERT INTO " NAME " VALUES (?)", -1, &stmt, NULL);
	for (int i = 0; !rc && i < count; i++) {
		rc = sqlite3_step(stmt) != SQLITE_DONE;
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	return sqlite3_close(db) || rc ? -1 : count;
}
