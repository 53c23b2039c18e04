/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library reads plans without the host's notice. It does not call the host's modules for that, and a
 * module in allocated memory does not change. It reads no plan on another connection that has got the same
 * address.
 *
 *   plan_strangers LIBRARY
 *
 * With SQLite inside (LINKED), the host's modules and SQLite's are in one image.
 */
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/spin.h"

#ifdef LINKED
int sqlite3_queryprof_init(sqlite3 *db, char **error, const struct sqlite3_api_routines *api);
#endif

#define TRIES 200 /* a statement that uses three periods almost always has samples */

static char folder[] = "/tmp/queryprof-strangers-XXXXXX";
static const char *library;
static char logged[300]; /* SQLite's last message to its log */
static int failed, asked;

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "failed: %s\n", what);
	failed = 1;
}

static void log_error(void *context, int code, const char *text)
{
	(void)context;
	snprintf(logged, sizeof(logged), "%d %s", code, text);
}

/* --- the host's module: a table of one row ---------------------------------------------------- */

static int connect_table(sqlite3 *db, void *context, int argc, const char *const *argv, sqlite3_vtab **table,
                         char **error)
{
	(void)context, (void)argc, (void)argv, (void)error;
	*table = calloc(1, sizeof(**table));
	return *table ? sqlite3_declare_vtab(db, "CREATE TABLE x(a)") : SQLITE_NOMEM;
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table, (void)info;
	asked++;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
	free(table);
	return SQLITE_OK;
}

struct cursor {
	sqlite3_vtab_cursor base;
	int at;
};

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
	(void)table;
	*cursor = calloc(1, sizeof(struct cursor));
	return *cursor ? SQLITE_OK : SQLITE_NOMEM;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	free(cursor);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc, sqlite3_value **argv)
{
	(void)number, (void)text, (void)argc, (void)argv;
	((struct cursor *)cursor)->at = 0;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
	((struct cursor *)cursor)->at++;
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
	return ((struct cursor *)cursor)->at > 0;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int number)
{
	(void)cursor;
	sqlite3_result_int(context, number);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
	*id = ((struct cursor *)cursor)->at;
	return SQLITE_OK;
}

#define METHODS                                                                                              \
	{                                                                                                    \
		.xCreate = connect_table, .xConnect = connect_table, .xBestIndex = best_index,               \
		.xDisconnect = disconnect_table, .xDestroy = disconnect_table, .xOpen = open_cursor,         \
		.xClose = close_cursor, .xFilter = filter, .xNext = next_row, .xEof = is_at_end,             \
		.xColumn = column, .xRowid = rowid,                                                          \
	}
static const sqlite3_module module = METHODS, module_as_made = METHODS;

/* --- the host ------------------------------------------------------------------------------------ */

static void burn(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc;
	spin_rounds((uint64_t)(3e6 * spin_rate));
	sqlite3_result_value(context, argv[0]);
}

static int read_number(void *context, int count, char **values, char **names)
{
	(void)names;
	*(long long *)context = count && values[0] ? atoll(values[0]) : -1;
	return 0;
}

__attribute__((format(printf, 2, 3))) static long long ask(sqlite3 *db, const char *format, ...)
{
	long long number = -1;
	char text[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (sqlite3_exec(db, text, read_number, &number, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: ", text);
		must(0, sqlite3_errmsg(db));
	}
	return number;
}

static long long metric(sqlite3 *db, const char *name)
{
	return ask(db, "SELECT value FROM system.metrics WHERE metric = '%s'", name);
}

static sqlite3 *open_database(void)
{
	sqlite3 *db;

	must(sqlite3_open(":memory:", &db) == SQLITE_OK, "open");
#ifndef LINKED
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
	must(sqlite3_load_extension(db, library, "sqlite3_queryprof_init", NULL) == SQLITE_OK, library);
#endif
	must(sqlite3_create_module(db, "stranger", &module, NULL) == SQLITE_OK, "module");
	must(sqlite3_create_function(db, "burn", 1, SQLITE_UTF8, NULL, burn, NULL, NULL) == SQLITE_OK,
	     "burn");
	ask(db, "SELECT set_setting('query_profiler_cpu_time_period_ns', 1000000)");
	return db;
}

/* Prepares, runs and finalizes a statement, with a different text each time, until the metric counts it. */
static void run_until(sqlite3 *db, const char *name, const char *sql)
{
	const long long before = metric(db, name);
	sqlite3_stmt *stmt;
	int once = 0;

	/* The library may read the plan after the first of the two. */
	for (int i = 0; i < 2; i++) {
		asked = 0;
		must(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, sql);
		sqlite3_finalize(stmt);
		must(!i || asked == once, sql);
		once = asked;
	}
	for (int i = 0; i < TRIES; i++) {
		asked = 0;
		ask(db, "%s /* %d */", sql, i);
		ask(db, "SELECT 1");
		must(asked == once, sql);
		if (metric(db, name) > before)
			return;
	}
	fprintf(stderr, "%s: ", name);
	must(0, sql);
}

static void check_tables(sqlite3 *db)
{
	sqlite3_module *copy = malloc(sizeof(*copy));

	ask(db, "CREATE VIRTUAL TABLE s USING stranger");
	must(copy != NULL, "memory");
	*copy = module_as_made;
	must(sqlite3_create_module(db, "allocated", copy, NULL) == SQLITE_OK, "module");
	ask(db, "CREATE VIRTUAL TABLE m USING allocated");
	ask(db, "CREATE VIRTUAL TABLE words USING fts5(a)");
	ask(db, "CREATE TABLE t(a); CREATE TABLE u(a)");
	ask(db, "INSERT INTO words VALUES ('x'); INSERT INTO t VALUES (1)");
	ask(db, "CREATE TRIGGER tt AFTER UPDATE ON t BEGIN INSERT INTO u SELECT burn(a) FROM s; END");
	run_until(db, "plans_read", "SELECT burn(a) FROM t");
	run_until(db, "plans_read", "SELECT burn(1) FROM words WHERE words MATCH 'x'");
	run_until(db, "plans_read", "SELECT burn(value) FROM json_each('[1]')");
	run_until(db, "plans_read", "SELECT burn(a) FROM s");
	run_until(db, "plans_read", "SELECT a FROM t WHERE a IN (SELECT burn(a) FROM s)");
	run_until(db, "plans_read", "UPDATE t SET a = 1");
	run_until(db, "plans_of_unknown_modules", "SELECT burn(a) FROM m");
	must(metric(db, "plans_different") == 0, "plans_different");
}

static void run_nested(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc;
	ask(sqlite3_context_db_handle(context), "SELECT burn(a) FROM gone /* %d */",
	    sqlite3_value_int(argv[0]));
}

/* The plan of a statement that ran inside another one is read at the next preparation on its connection. */
static void check_addresses(void)
{
	int met = 0;

	for (int i = 0; met < 20 && i < TRIES; i++) {
		sqlite3 *db = open_database(), *other;
		sqlite3_stmt *stmt;

		must(sqlite3_create_function(db, "run_nested", 1, SQLITE_UTF8, NULL, run_nested, NULL,
		                             NULL) == SQLITE_OK,
		     "run_nested");
		ask(db, "CREATE TABLE gone(a)");
		ask(db, "INSERT INTO gone VALUES (%d)", i);
		must(sqlite3_prepare_v2(db, "CREATE TABLE made AS SELECT run_nested(a) FROM gone", -1, &stmt,
		                        NULL) == SQLITE_OK,
		     "prepare");
		must(sqlite3_step(stmt) == SQLITE_DONE, "step");
		must(sqlite3_finalize(stmt) == SQLITE_OK, "finalize");
		must(sqlite3_close(db) == SQLITE_OK, "close");
		logged[0] = '\0';
		must(sqlite3_open(":memory:", &other) == SQLITE_OK, "open");
		met += other == db;
		ask(other, "SELECT 1");
		must(!logged[0], logged);
		sqlite3_close(other);
	}
	must(met > 0, "another connection at the address");
}

int main(int argc, char **argv)
{
	char command[64];
	sqlite3 *db;

	if (argc < 2 || !mkdtemp(folder))
		return 2;
	library = argv[1];
	sqlite3_config(SQLITE_CONFIG_LOG, log_error, NULL);
#ifdef LINKED
	sqlite3_auto_extension((void (*)(void))sqlite3_queryprof_init);
#endif
	db = open_database();
	ask(db, "SELECT set_setting('trace_log_path', '%s/trace')", folder);
	check_tables(db);
	check_addresses();
	ask(db, "SELECT set_setting('trace_log_path', '')");
	sqlite3_close(db);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || failed;
}
