/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection keeps its error until the host's next call of SQLite sets another one: what the
 * library reads of a plan in between must not clear it.
 */
#include "host.h"

/* Long enough for samples, then it fails. Each text has a plan of its own to read. */
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_errors) };

	host_begin(argc > 1 ? argv[1] : "loaded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
