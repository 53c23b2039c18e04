/* SPDX-License-Identifier: Apache-2.0 */
/* A module that runs queries through its own import table. */
#include <sqlite3.h>

int plugin_query(sqlite3 *db);

__attribute__((visibility("default"))) int plugin_query(sqlite3 *db)
{
	sqlite3_stmt *stmt;
	int number = 0;

	if (sqlite3_prepare_v2(db, "SELECT 1 AS plugin", -1, &stmt, 0))
		return 0;
	if (sqlite3_step(stmt) == SQLITE_ROW)
		number = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}
