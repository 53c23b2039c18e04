/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: arguments of all functions, constraints on all tables, and settings, in a process
 * that has loaded the library as it is built (QUERYPROF_LIBRARY). Functions, tables and settings
 * are those that the library says it has.
 *
 * An input is a number that chooses one of them, and values: a byte for the type, and what the type
 * takes. Texts have no slash: a trace file is made in the working directory only.
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

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

/* Each row of the query is a statement. */
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
	add_statements("SELECT format('UPDATE system.settings SET value = ? WHERE name = %Q', name) FROM "
	               "system.settings");
	fprintf(stderr, "%zu statements\n", count);
	return 0;
}

/* Takes a value from the input. */
static void bind(sqlite3_stmt *stmt, int number, const uint8_t **data, size_t *size)
{
	uint8_t type = *size ? (*data)[0] : 0;
	size_t length = *size > 1 ? (*data)[1] : 0, used;
	int64_t integer = 0;
	double real;
	char *text;

	length = *size < 2 + length ? (*size > 2 ? *size - 2 : 0) : length;
	used = type % 5 == 0 ? 1 : 2 + length;
	if (type % 5 == 1 || type % 5 == 2) {
		memcpy(&integer, *data + (*size < 2 ? *size : 2), length < 8 ? length : 8);
		memcpy(&real, &integer, sizeof real);
		if (type % 5 == 1)
			sqlite3_bind_int64(stmt, number, integer);
		else
			sqlite3_bind_double(stmt, number, real);
	} else if (type % 5 > 2) {
		text = malloc(length + 1);
		memcpy(text, *data + (*size < 2 ? *size : 2), length);
		text[length] = 0;
		for (char *slash = text; (slash = memchr(slash, '/', length - (size_t)(slash - text)));)
			*slash = '_';
		if (type % 5 == 3)
			sqlite3_bind_text(stmt, number, text, (int)length, free);
		else
			sqlite3_bind_blob(stmt, number, text, (int)length, free);
	}
	used = used < *size ? used : *size;
	*data += used;
	*size -= used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sqlite3_stmt *stmt;

	if (size < 2)
		return 0;
	if (sqlite3_prepare_v2(db, statements[(data[0] | data[1] << 8) % count], -1, &stmt, NULL))
		return 0; /* another number of arguments */
	data += 2;
	size -= 2;
	for (int i = 1; i <= sqlite3_bind_parameter_count(stmt) && i <= ARGUMENTS_MAX; i++)
		bind(stmt, i, &data, &size);
	for (int rows = 0; rows < ROWS_MAX && sqlite3_step(stmt) == SQLITE_ROW; rows++)
		for (int i = 0; i < sqlite3_column_count(stmt); i++)
			sqlite3_column_bytes(stmt, i);
	sqlite3_finalize(stmt);
	return 0;
}
