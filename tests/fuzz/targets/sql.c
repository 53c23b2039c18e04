/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: arguments of all functions, constraints on all tables, and settings, in a process that has
 * loaded the library as it is built (QUERYPROF_LIBRARY); and labels in comments. The library itself lists its
 * functions, tables and settings. Each way of SQL to change a setting is used.
 *
 * An input is a number that chooses one of the statements, and values (value.h).
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "value.h"

#define PLACE '\1' /* marks the place of a value in a statement */
#define STATEMENTS_MAX 2000
#define ARGUMENTS_MAX 5
#define ROWS_MAX 20

static sqlite3 *db;
static char *statements[STATEMENTS_MAX];
static size_t count;

size_t fuzz_choices(void)
{
	return count;
}

/* Each row of the query's result is a statement. */
static void add_statements(const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL)) {
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
		exit(2);
	}
	while (sqlite3_step(stmt) == SQLITE_ROW && count < STATEMENTS_MAX)
		statements[count++] = strdup((const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *error = NULL;

	(void)argc, (void)argv;
	setenv("QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS", "1000000", 1);
	setenv("QUERYPROF_LOG_QUERIES_MIN_QUERY_DURATION_NS", "0", 1); /* the flusher reads each comment */
	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_exec(db, "CREATE TABLE before AS SELECT name FROM pragma_function_list", NULL, NULL,
	                 NULL))
		exit(2);
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		exit(2);
	}
	add_statements("WITH f(name) AS (SELECT DISTINCT name FROM pragma_function_list EXCEPT SELECT name "
	               "FROM before),"
	               " a(list) AS (VALUES (''), ('?'), ('?,?'), ('?,?,?'), ('?,?,?,?')) "
	               "SELECT format('SELECT \"%w\"(%s)', name, list) FROM f, a ORDER BY 1");
	add_statements(
		"WITH o(text) AS (VALUES ('= ?'), ('> ?'), ('LIKE ?'), ('BETWEEN ? AND ?'), ('IN (?, ?, "
		"?)')) "
		"SELECT format('SELECT * FROM system.\"%w\" WHERE \"%w\" %s LIMIT 5', t.name, c.name, text) "
		"FROM pragma_table_list t, pragma_table_xinfo(t.name, t.schema) c, o WHERE t.schema = "
		"'system' "
		"ORDER BY 1");
	add_statements("WITH w(text) AS (VALUES ('UPDATE system.settings SET value = ? WHERE name = %Q'),"
	               " ('SELECT set_setting(%Q, ?)'), ('PRAGMA %s = \1')) "
	               "SELECT format(text, name) FROM w, system.settings");
	add_statements("VALUES ('SELECT 1 /*\1*/'), ('SELECT 2 /*tenant=''\1''*/')");
	fprintf(stderr, "%zu statements\n", count);
	return 0;
}

/* Puts a value of the input in the place of PLACE, where a parameter is not possible. In a comment the text
 * is not quoted. Values contain no slash, so they cannot end the comment. */
static char *put_value(const char *statement, const char *place, const uint8_t **data, size_t *size)
{
	struct value value = take_value(data, size);
	const char *format = !strncmp(statement, "PRAGMA", 6) ? "%.*s%Q%s" : "%.*s%s%s";
	int head = (int)(place - statement);
	char *sql =
		value.type == VALUE_INTEGER
			? sqlite3_mprintf("%.*s%lld%s", head, statement, (long long)value.integer, place + 1)
			: sqlite3_mprintf(format, head, statement, value.text, place + 1);

	free(value.text);
	return sql;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *statement, *place;
	sqlite3_stmt *stmt;
	char *made;
	int code;

	if (size < 2)
		return 0;
	statement = statements[(data[0] | data[1] << 8) % count];
	place = strchr(statement, PLACE);
	data += 2;
	size -= 2;
	made = place ? put_value(statement, place, &data, &size) : NULL;
	code = sqlite3_prepare_v2(db, made ? made : statement, -1, &stmt, NULL);
	sqlite3_free(made);
	if (code)
		return 0; /* wrong number of arguments, or not a number */
	for (int i = 1; i <= sqlite3_bind_parameter_count(stmt) && i <= ARGUMENTS_MAX; i++)
		bind_value(stmt, i, take_value(&data, &size));
	for (int rows = 0; rows < ROWS_MAX && sqlite3_step(stmt) == SQLITE_ROW; rows++)
		for (int i = 0; i < sqlite3_column_count(stmt); i++)
			sqlite3_column_bytes(stmt, i);
	sqlite3_finalize(stmt);
	return 0;
}
