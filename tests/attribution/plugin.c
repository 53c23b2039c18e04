/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin with its own SQLite library. It calls the library that it is linked with, not the program's
 * library.
 */
#include <sqlite3.h>
#include <stddef.h>

__attribute__((visibility("default"))) int plugin_open(const char *path, sqlite3 **db);
__attribute__((visibility("default"))) long long plugin_ask(sqlite3 *db, const char *sql);
__attribute__((visibility("default"))) int plugin_exec(sqlite3 *db, const char *sql);
__attribute__((visibility("default"))) int plugin_load(sqlite3 *db, const char *library);
__attribute__((visibility("default"))) int plugin_close(sqlite3 *db);
__attribute__((visibility("default"))) const char *plugin_version(void);

int plugin_open(const char *path, sqlite3 **db)
{
	return sqlite3_open(path, db);
}

/* Returns the first number, or a negative error code. */
long long plugin_ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	long long number = -sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	int rc = number ? SQLITE_ERROR : sqlite3_step(stmt);

	if (rc == SQLITE_ROW) {
		number = sqlite3_column_int64(stmt, 0);
		rc = sqlite3_step(stmt);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE || number < 0 ? number : -rc;
}

int plugin_exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int plugin_load(sqlite3 *db, const char *library)
{
	int rc = sqlite3_enable_load_extension(db, 1);

	return rc ? rc : sqlite3_load_extension(db, library, "sqlite3_queryprof_init", NULL);
}

int plugin_close(sqlite3 *db)
{
	return sqlite3_close(db);
}

const char *plugin_version(void)
{
	return sqlite3_libversion();
}
