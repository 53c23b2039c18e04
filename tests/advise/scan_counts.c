/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQLite itself counts for each loop of statements: a line of JSON for each line of the standard input,
 * with the address, words, starts, rows and estimate of each loop. It is linked with the SQLite of the
 * command.
 *
 * usage: advise_scan_counts DATABASE
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sqlite3_stmt_scanstatus(sqlite3_stmt *, int, int, void *);

static void fail(sqlite3 *db, const char *sql)
{
	fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
	exit(1);
}

/* Runs SQL of this program, with a text as its parameter, and prints the first column. */
static void print_quoted(sqlite3 *db, const char *text)
{
	sqlite3_stmt *row = NULL;

	sqlite3_prepare_v2(db, "SELECT json_quote(?)", -1, &row, NULL);
	sqlite3_bind_text(row, 1, text, -1, SQLITE_STATIC);
	if (sqlite3_step(row) != SQLITE_ROW)
		fail(db, "json_quote()");
	fputs((const char *)sqlite3_column_text(row, 0), stdout);
	sqlite3_finalize(row);
}

static void run(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_int64 loops, rows;
	double estimate;
	int code;

	if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) || sqlite3_prepare_v2(db, sql, -1, &statement, NULL))
		fail(db, sql);
	while ((code = sqlite3_step(statement)) == SQLITE_ROW)
		;
	if (code != SQLITE_DONE)
		fail(db, sql);
	putchar('[');
	for (int i = 0; sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_NLOOP, &loops) == SQLITE_OK;
	     i++) {
		const char *detail = NULL;
		int address = 0;

		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_NVISIT, &rows);
		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_EST, &estimate);
		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_EXPLAIN, &detail);
		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_SELECTID, &address);
		printf("%s[%d, ", i ? ", " : "", address);
		print_quoted(db, detail ? detail : "");
		printf(", %lld, %lld, %.17g]", (long long)loops, (long long)rows, estimate);
	}
	printf("]\n");
	sqlite3_finalize(statement);
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

int main(int argc, char **argv)
{
	static char line[10000];
	sqlite3 *db = NULL;

	if (argc != 2 || sqlite3_open(argv[1], &db))
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		run(db, line);
	}
	sqlite3_close(db);
	return 0;
}
