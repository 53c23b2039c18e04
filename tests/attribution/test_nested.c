/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL inside SQL: which work belongs to the statement that the program runs, and which has its own row.
 */
#include "../host/host.h"
#include "../lib/ticks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns all rows of the log without ids and times: `text`, or `text < text of the initial query`, in the
 * order of their ends. */
static char *lines(sqlite3 *db)
{
	host_quiet(db);
	return host_text(
		db,
		"SELECT group_concat(line, '; ') FROM (SELECT q.query || iif(q.query_id = "
		"q.initial_query_id, '', ' < ' || coalesce(i.query, '?')) || iif(q.exception_code, ' !' || "
		"q.exception_code, '') AS line FROM system.query_log AS q LEFT JOIN system.query_log AS i ON "
		"i.query_id = q.initial_query_id WHERE q.query NOT LIKE 'PRAGMA query_profiler%%' AND "
		"q.query NOT "
		"LIKE 'SELECT set_setting%%' ORDER BY q.query_start_time_microseconds, q.query_id)");
}

static void expect_lines(sqlite3 *db, const char *expected)
{
	char *seen = lines(db);

	assert_non_null(seen);
	assert_string_equal(seen, expected);
	free(seen);
}

/* Every run has a row, however short it is, in a separate trace file. */
static sqlite3 *open_fresh(const char *name)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/%s.db", host_directory(), name);
	db = host_open(path);
	host_exec(db, "PRAGMA trace_log_path = '%s/%s.trace'", host_directory(), name);
	host_exec(db, "PRAGMA log_queries_min_query_duration_ns = 0; PRAGMA "
	              "query_profiler_cpu_time_period_ns = 1000000");
	return db;
}

/* Statements that SQLite itself runs do not count as queries. */
static void test_of_sqlite(void **state)
{
	sqlite3 *db = open_fresh("own");

	(void)state;
	host_exec(
		db,
		"CREATE TABLE t(x); CREATE TABLE log(x);"
		"CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log SELECT new.x; DELETE FROM log; END;"
		"INSERT INTO t VALUES (1);"
		"CREATE VIRTUAL TABLE f USING fts5(body);"
		"INSERT INTO f VALUES ('one two');"
		"SELECT count(*) FROM f WHERE f MATCH 'two';"
		"ATTACH ':memory:' AS other;"
		"VACUUM;"
		"DETACH other;"
		"BEGIN; INSERT INTO t VALUES (2); COMMIT;"
		"PRAGMA integrity_check;"
		"DROP TABLE f");
	expect_lines(db, "CREATE TABLE t(x);; CREATE TABLE log(x);; "
	                 "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log SELECT new.x; DELETE FROM "
	                 "log; END;; "
	                 "INSERT INTO t VALUES (1);; CREATE VIRTUAL TABLE f USING fts5(body);; "
	                 "INSERT INTO f VALUES ('one two');; SELECT count(*) FROM f WHERE f MATCH 'two';; "
	                 "ATTACH ':memory:' AS other;; VACUUM;; DETACH other;; BEGIN;; INSERT INTO t VALUES "
	                 "(2);; COMMIT;; "
	                 "PRAGMA integrity_check;; DROP TABLE f");
	host_close(db);
}

/* Statements that the program's functions run count as queries. */
static void run_sql(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	sqlite3 *db = sqlite3_context_db_handle(context);
	sqlite3_stmt *stmt;

	(void)argc;
	assert_int_equal(sqlite3_prepare_v2(db, (const char *)sqlite3_value_text(argv[0]), -1, &stmt, NULL),
	                 SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		sqlite3_result_value(context, sqlite3_column_value(stmt, 0));
	sqlite3_finalize(stmt);
}

static void exec_sql(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc;
	sqlite3_exec(sqlite3_context_db_handle(context), (const char *)sqlite3_value_text(argv[0]), NULL,
	             NULL, NULL);
	sqlite3_result_int(context, 1);
}

static void test_of_functions(void **state)
{
	sqlite3 *db = open_fresh("functions");

	(void)state;
	sqlite3_create_function(db, "run", 1, SQLITE_UTF8, NULL, run_sql, NULL, NULL);
	sqlite3_create_function(db, "exec", 1, SQLITE_UTF8, NULL, exec_sql, NULL, NULL);
	host_exec(db, "SELECT run('SELECT 1'), run('SELECT run(''SELECT 2'')');"
	              "SELECT exec('CREATE TABLE t(x); INSERT INTO t VALUES (1)');"
	              "CREATE VIRTUAL TABLE f USING fts5(body);"
	              "SELECT exec('INSERT INTO f VALUES (''a b'')');"
	              "SELECT exec('SELECT abs(-9223372036854775807 - 1)')");
	expect_lines(
		db,
		"SELECT run('SELECT 1'), run('SELECT run(''SELECT 2'')');; "
		"SELECT 1 < SELECT run('SELECT 1'), run('SELECT run(''SELECT 2'')');; "
		"SELECT run('SELECT 2') < SELECT run('SELECT 1'), run('SELECT run(''SELECT 2'')');; "
		"SELECT 2 < SELECT run('SELECT 1'), run('SELECT run(''SELECT 2'')');; "
		"SELECT exec('CREATE TABLE t(x); INSERT INTO t VALUES (1)');; "
		"CREATE TABLE t(x); < SELECT exec('CREATE TABLE t(x); INSERT INTO t VALUES (1)');; "
		"INSERT INTO t VALUES (1) < SELECT exec('CREATE TABLE t(x); INSERT INTO t VALUES (1)');; "
		"CREATE VIRTUAL TABLE f USING fts5(body);; SELECT exec('INSERT INTO f VALUES (''a b'')');; "
		"INSERT INTO f VALUES ('a b') < SELECT exec('INSERT INTO f VALUES (''a b'')');; "
		"SELECT exec('SELECT abs(-9223372036854775807 - 1)'); "
		"SELECT abs(-9223372036854775807 - 1) < SELECT exec('SELECT abs(-9223372036854775807 - 1)') "
		"!1");
	host_close(db);
}

/* A virtual table of the program; its cursor keeps a statement open from row to row. */
struct cursor {
	sqlite3_vtab_cursor base;
	sqlite3_stmt *stmt;
	int rc;
};

static sqlite3 *behind; /* the connection that the table reads */

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                         char **error)
{
	(void)aux, (void)argc, (void)argv, (void)error;
	*vtab = calloc(1, sizeof(**vtab));
	return sqlite3_declare_vtab(db, "CREATE TABLE x(value)");
}

static int table_disconnect(sqlite3_vtab *vtab)
{
	free(vtab);
	return SQLITE_OK;
}

static int table_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	(void)vtab, (void)info;
	return SQLITE_OK;
}

static int table_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **cursor)
{
	(void)vtab;
	*cursor = calloc(1, sizeof(struct cursor));
	return SQLITE_OK;
}

static int table_close(sqlite3_vtab_cursor *cursor)
{
	sqlite3_finalize(((struct cursor *)cursor)->stmt);
	free(cursor);
	return SQLITE_OK;
}

static int table_next(sqlite3_vtab_cursor *cursor)
{
	((struct cursor *)cursor)->rc = sqlite3_step(((struct cursor *)cursor)->stmt);
	return SQLITE_OK;
}

static int table_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                        sqlite3_value **argv)
{
	(void)number, (void)text, (void)argc, (void)argv;
	assert_int_equal(
		sqlite3_prepare_v2(behind,
	                           "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE "
	                           "x < 400000) SELECT /* behind */ sum(x) FROM c GROUP BY x / 100000",
	                           -1, &((struct cursor *)cursor)->stmt, NULL),
		SQLITE_OK);
	return table_next(cursor);
}

static int table_eof(sqlite3_vtab_cursor *cursor)
{
	return ((struct cursor *)cursor)->rc != SQLITE_ROW;
}

static int table_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
	(void)column;
	sqlite3_result_value(context, sqlite3_column_value(((struct cursor *)cursor)->stmt, 0));
	return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *row)
{
	(void)cursor;
	*row = 0;
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.xConnect = table_connect,
	.xDisconnect = table_disconnect,
	.xBestIndex = table_best_index,
	.xOpen = table_open,
	.xClose = table_close,
	.xFilter = table_filter,
	.xNext = table_next,
	.xEof = table_eof,
	.xColumn = table_column,
	.xRowid = table_rowid,
};

static void test_of_virtual_tables(void **state)
{
	sqlite3 *db = open_fresh("virtual");

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &behind), SQLITE_OK);
	host_exec(behind, "PRAGMA query_profiler_cpu_time_period_ns = 1000000");
	assert_int_equal(sqlite3_create_module(db, "behind", &module, NULL), SQLITE_OK);
	assert_int_equal(host_int(db, "SELECT /* before */ count(*) FROM behind"), 5);
	/* this one ends after the first row */
	assert_int_equal(host_int(db, "SELECT /* before */ value > 0 FROM behind"), 1);
	host_quiet(db);
	/* Each sample belongs to the statement that the program runs. The inner statement counts its samples,
	 * unless it may have run between ticks. The PRAGMA that ends the sampling may have a sample, too, but
	 * has no row in the log. */
	assert_int_equal(
		host_int(db,
	                 "SELECT count(*) FROM system.query_log WHERE query LIKE '%%/* behind */%%' AND "
	                 "query_id <> initial_query_id AND (samples_cpu > 0 OR cpu_time_ns < "
	                 "(voluntary_switches + involuntary_switches + 2) * %.0f)",
	                 tick_ns()),
		2);
	assert_int_equal(host_int(db,
	                          "SELECT group_concat(result_rows) = '5,1' FROM (SELECT result_rows FROM "
	                          "system.query_log WHERE query LIKE '%%/* behind */%%' ORDER BY query_id)"),
	                 1);
	assert_int_equal(
		host_int(db,
	                 "SELECT count(*) FROM system.trace_log WHERE query_id = '' OR query_id IN (SELECT "
	                 "query_id FROM system.query_log WHERE query LIKE '%%/* behind */%%')"),
		0);
	assert_int_equal(
		host_int(db,
	                 "SELECT count(*) FROM system.query_log AS b JOIN system.query_log AS i ON "
	                 "i.initial_query_id = b.query_id WHERE b.query LIKE '%%/* before */%%' AND i.query "
	                 "LIKE "
	                 "'%%/* behind */%%' AND i.weight_cpu BETWEEN 0.7 * b.weight_cpu AND b.weight_cpu"),
		2);
	host_close(db);
	host_close(behind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_sqlite),
		cmocka_unit_test(test_of_functions),
		cmocka_unit_test(test_of_virtual_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
