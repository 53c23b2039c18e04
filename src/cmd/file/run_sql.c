/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/run_sql.h"

#include <string.h>

#include "cmd/line/command.h"
#include "cmd/line/nearest.h"

void run_sql_bind(sqlite3_stmt *statement, const struct sql_parameter *parameters)
{
	for (; parameters && parameters->name; parameters++) {
		int index = sqlite3_bind_parameter_index(statement, parameters->name);
		if (index && parameters->value)
			sqlite3_bind_text(statement, index, parameters->value, -1, SQLITE_TRANSIENT);
	}
}

const char *run_sql_text(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return text ? text : "";
}

/* What users mistype. */
static const struct {
	const char *message, *names, *list;
} mistypes[] = {
	{ "no such table: ",
	  "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
	  " UNION SELECT name FROM temp.sqlite_schema WHERE type IN ('table', 'view')",
	  "SELECT name FROM sqlite_schema lists them" },
	{ "no such column: ",
	  "SELECT DISTINCT c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c"
	  " WHERE s.type IN ('table', 'view')",
	  "PRAGMA table_info(TABLE) lists the columns of a table" },
};

static void complain_of_sql(sqlite3 *db)
{
	char *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
	struct nearest nearest = { .word = "" };
	const char *list = NULL;

	for (size_t i = 0; message && i < sizeof(mistypes) / sizeof(mistypes[0]); i++) {
		sqlite3_stmt *row = NULL;

		if (strncmp(message, mistypes[i].message, strlen(mistypes[i].message)) != 0)
			continue;
		nearest.word = message + strlen(mistypes[i].message);
		list = mistypes[i].list;
		sqlite3_prepare_v2(db, mistypes[i].names, -1, &row, NULL);
		while (row && sqlite3_step(row) == SQLITE_ROW)
			if (sqlite3_column_text(row, 0))
				nearest_try(&nearest, (const char *)sqlite3_column_text(row, 0));
		sqlite3_finalize(row);
		if (!strcmp(nearest.best, nearest.word)) /* a column of another table */
			nearest.best[0] = '\0';
	}
	if (nearest.best[0])
		complain("%s; did you mean %s?", message, nearest.best);
	else
		complain("%s%s%s", message ? message : "out of memory", list ? "; " : "", list ? list : "");
	sqlite3_free(message);
}

int run_sql(sqlite3 *db, const char *sql, const struct sql_parameter *parameters, const struct output *output)
{
	while (*sql) {
		sqlite3_stmt *statement;
		int code = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
		if (code == SQLITE_OK && statement) {
			run_sql_bind(statement, parameters);
			code = output_rows(statement, output);
		}
		if (code != SQLITE_OK) {
			complain_of_sql(db);
			sqlite3_finalize(statement);
			return COMMAND_FAILED;
		}
		sqlite3_finalize(statement);
	}
	return COMMAND_FINE;
}

void run_sql_prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	while (*sql && sqlite3_prepare_v2(db, sql, -1, &statement, &sql) == SQLITE_OK)
		sqlite3_finalize(statement);
}
