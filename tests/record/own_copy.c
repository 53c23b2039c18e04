/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a static SQLite. With an argument, it does not use it. */
#include <sqlite3.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	const char *sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 250000)"
			  " SELECT sum(x) FROM c";
	sqlite3_stmt *stmt;
	sqlite3 *db;

	(void)argv;
	if (argc > 1)
		return 0;
	if (sqlite3_open(":memory:", &db) || sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) ||
	    sqlite3_step(stmt) != SQLITE_ROW)
		return 1;
	puts((const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	return sqlite3_close(db);
}
