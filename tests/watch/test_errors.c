/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection keeps its error until the host's next SQLite call sets another one. When the library reads a
 * plan in between, it must neither clear nor set the error. The host's error log contains only the host's
 * errors.
 */
#include "host.h"

#include <stdbool.h>
#include <string.h>

static bool is_loaded;
static int misuses, lengths; /* reports of SQLite */

static void see_report(void *context, int code, const char *what)
{
	(void)context, (void)what;
	misuses += code == SQLITE_MISUSE;
	lengths += code == SQLITE_TOOBIG;
}

/* Runs long enough for samples, then fails. Each text has a plan of its own to read. */
static void fail_once(sqlite3 *db, int number)
{
	char *sql =
		sqlite3_mprintf("WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n LIMIT 300000)"
	                        " SELECT sum(9223372036854775807) AS fails_%d FROM n WHERE a IN (1, 299999)",
	                        number);
	sqlite3_stmt *stmt = host_prepare(db, sql);

	sqlite3_free(sql);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ERROR);
	assert_string_equal(sqlite3_errmsg(db), "integer overflow");
	assert_int_equal(sqlite3_reset(stmt), SQLITE_ERROR);
	assert_string_equal(sqlite3_errmsg(db), "integer overflow");
	assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
	assert_string_equal(sqlite3_errmsg(db), "integer overflow");
	assert_int_equal(sqlite3_errcode(db), SQLITE_ERROR);
}

static void test_errors(void **state)
{
	sqlite3 *db = host_open("");

	(void)state;
	for (int i = 0; i < 5; i++)
		fail_once(db, i);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define NUMBERS "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n LIMIT 300000)"

static void same(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sqlite3_result_value(context, values[0]);
}

/* The EXPLAIN for the plan cannot be prepared because a function was removed or the text is too long. */
static void test_gone(void **state)
{
	static const char *const texts[] = { NUMBERS " SELECT count(*) FROM n WHERE same(a) <> 2",
		                             NUMBERS " SELECT count(*) FROM n WHERE same(a) > 2" };
	sqlite3 *db = host_open("");
	sqlite3_stmt *stmt;

	(void)state;
	for (int is_long = 0; is_long < 2; is_long++) {
		sqlite3_create_function(db, "same", 1, SQLITE_UTF8, NULL, same, NULL, NULL);
		if (is_long)
			sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, (int)strlen(texts[1]) + 1);
		stmt = host_prepare(db, texts[is_long]);
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
		if (!is_long)
			sqlite3_create_function(db, "same", 1, SQLITE_UTF8, NULL, NULL, NULL, NULL);
		assert_int_equal(sqlite3_reset(stmt), SQLITE_OK);
		assert_int_equal(sqlite3_errcode(db), SQLITE_OK);
		assert_string_equal(sqlite3_errmsg(db), "not an error");
		sqlite3_finalize(stmt);
		sqlite3_close(db);
		db = host_open("two");
	}
	sqlite3_close(db);
	assert_int_equal(lengths, 0);
}

static void fail_at_end(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	if (sqlite3_value_int(values[0]) == 300000)
		sqlite3_result_error(context, "at the end", -1);
}

/* The connection is closed, but exists until its statements end. Most calls on it are misuse. */
static void test_closed(void **state)
{
	sqlite3 *db = host_open("");
	sqlite3_stmt *fails, *plain;

	(void)state;
	sqlite3_create_function(db, "fail_at_end", 1, SQLITE_UTF8, NULL, fail_at_end, NULL, NULL);
	fails = host_prepare(db, NUMBERS " SELECT fail_at_end(a) FROM n WHERE a IN (1, 300000)");
	plain = host_prepare(db, NUMBERS " SELECT count(*) FROM n WHERE a <> 2");
	assert_int_equal(sqlite3_step(fails), SQLITE_ROW);
	assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
	assert_int_equal(sqlite3_step(fails), SQLITE_ERROR);
	assert_int_equal(sqlite3_reset(fails), SQLITE_ERROR);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sqlite3_step(plain), SQLITE_ROW);
		assert_int_equal(sqlite3_reset(plain), SQLITE_OK);
	}
	sqlite3_finalize(fails);
	sqlite3_finalize(plain);
	assert_int_equal(misuses, 0);
	if (!is_loaded)
		return;
	db = host_open("");
	assert_int_equal(host_int(db, "SELECT count(*) FROM system.query_log WHERE exception = 'SQL logic "
	                              "error' AND query LIKE '%SELECT fail_at_end(a)%'"),
	                 1);
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_errors), cmocka_unit_test(test_gone),
		                            cmocka_unit_test(test_closed) };
	const char *how = argc > 1 ? argv[1] : "loaded";

	is_loaded = !strcmp(how, "loaded");
	sqlite3_config(SQLITE_CONFIG_LOG, see_report, NULL);
	host_begin(how);
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
