/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares statements and does not finalize them: open_statements STATEMENTS TEXTS keep|close|finalize
 *
 * The numbered texts alternate. Prints sqlite3_db_status()'s memory of statements.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const int statements = argc > 3 ? atoi(argv[1]) : 0, texts = argc > 3 ? atoi(argv[2]) : 1;
	int used = 0, most;
	sqlite3 *db;

	if (argc < 4 || sqlite3_open(":memory:", &db) ||
	    sqlite3_exec(db, "CREATE TABLE t (x)", NULL, NULL, NULL))
		return 1;
	for (int i = 0; i < statements; i++) {
		char text[200] = "INSERT INTO t SELECT ?", *end = text + strlen(text);
		sqlite3_stmt *stmt;

		for (int k = 0; k < i % texts; k++)
			end += snprintf(end, sizeof(text) - (size_t)(end - text), " + ?");
		if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) || sqlite3_step(stmt) != SQLITE_DONE ||
		    sqlite3_reset(stmt) || (!strcmp(argv[3], "finalize") && sqlite3_finalize(stmt)))
			return 1;
	}
	sqlite3_db_status(db, SQLITE_DBSTATUS_STMT_USED, &used, &most, 0);
	printf("%d\n", used);
	if (!strcmp(argv[3], "close"))
		sqlite3_close_v2(db);
	return 0;
}
