/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL functions of the host step statements inside another statement's step. SQLite itself resets those
 * statements if a cached statement is stepped again or the schema has changed.
 */
#include "host.h"

#include <string.h>

#define ROUNDS 300

static sqlite3 *other;
static sqlite3_stmt *cached;

/* Steps the cached statement to its end without a reset. */
static void step_cached(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	sqlite3_result_int(context, sqlite3_step(cached));
}

/* Steps one row, so that the statement stays in the middle of its run. */
static void step_one_row(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	if (sqlite3_step(cached) != SQLITE_ROW)
		sqlite3_reset(cached);
	sqlite3_result_int(context, 1);
}

static void change_schema(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	static int changes;
	char *sql = sqlite3_mprintf("CREATE TABLE IF NOT EXISTS t%d(x); DROP TABLE t%d", changes, changes);

	(void)argc, (void)argv;
	changes++;
	sqlite3_exec(other, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	sqlite3_result_int(context, 1);
}

/* Runs any SQL, including a step of the statement that called it. */
static void run(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc;
	sqlite3_exec(sqlite3_context_db_handle(context), (const char *)sqlite3_value_text(argv[0]), NULL,
	             NULL, NULL);
	sqlite3_result_int(context, 1);
}

/* Resets a statement that an outer call is stepping, or a statement in the middle of its run. */
static void reset_cached(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	sqlite3_reset(cached);
	sqlite3_result_int(context, 1);
}

static sqlite3 *open_with(const char *name, void (*function)(sqlite3_context *, int, sqlite3_value **))
{
	sqlite3 *db = host_open("");

	sqlite3_create_function(db, name, -1, SQLITE_UTF8, NULL, function, NULL, NULL);
	sqlite3_create_function(db, "run", -1, SQLITE_UTF8, NULL, run, NULL, NULL);
	host_exec(db, "CREATE TABLE n(x); INSERT INTO n WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT "
	              "x + 1 FROM c WHERE x < 50) SELECT x FROM c");
	return db;
}

static void close_all(sqlite3 *db)
{
	sqlite3_finalize(cached);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_stepped_again(void **state)
{
	sqlite3 *db = open_with("log", step_cached);

	(void)state;
	other = host_open("log.db");
	host_exec(other, "CREATE TABLE log(x); PRAGMA synchronous = OFF");
	cached = host_prepare(other, "INSERT INTO log VALUES (1)");
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(host_int(db, "SELECT sum(log(x)) FROM n"), 50 * SQLITE_DONE);
	assert_int_equal(host_int(other, "SELECT count(*) FROM log"), 50 * ROUNDS);
	close_all(db);
}

static void test_left_open(void **state)
{
	sqlite3 *db = open_with("one", step_one_row);

	(void)state;
	other = host_open("");
	host_exec(other, "CREATE TABLE m(x); INSERT INTO m VALUES (1), (2), (3)");
	cached = host_prepare(other, "SELECT x FROM m");
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(host_int(db, "SELECT sum(one(x)) FROM n"), 50);
	close_all(db);
}

static void test_prepared_again(void **state)
{
	sqlite3 *db = open_with("change", change_schema);

	(void)state;
	other = host_open("");
	host_exec(other, "CREATE TABLE m(x); INSERT INTO m VALUES (1), (2), (3)");
	cached = host_prepare(other, "SELECT count(*) FROM m");
	sqlite3_create_function(db, "count_again", -1, SQLITE_UTF8, NULL, step_cached, NULL, NULL);
	for (int i = 0; i < ROUNDS / 10; i++)
		assert_int_equal(host_int(db, "SELECT max(change(x) + count_again(x)) FROM n") > 0, 1);
	close_all(db);
}

static void test_reset_inside(void **state)
{
	sqlite3 *db = open_with("reset", reset_cached);

	(void)state;
	other = host_open("");
	sqlite3_create_function(other, "reset", -1, SQLITE_UTF8, NULL, reset_cached, NULL, NULL);
	host_exec(other, "CREATE TABLE m(x); INSERT INTO m VALUES (1), (2), (3)");
	cached = host_prepare(other, "SELECT x FROM m");
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(sqlite3_step(cached), SQLITE_ROW);
		assert_int_equal(host_int(db, "SELECT run('SELECT reset() FROM n') + reset()"), 2);
	}
	close_all(db);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stepped_again),
		cmocka_unit_test(test_left_open),
		cmocka_unit_test(test_prepared_again),
		cmocka_unit_test(test_reset_inside),
	};

	host_begin(argv[1]);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
