/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's automatic extension relies on preparations that the host makes for each open. The library
 * opens its own connection before the host's first one, so that statements have plans.
 */
#include "host.h"

#include <stdbool.h>
#include <time.h>

#define BURN_S 5

static __thread bool is_opening;
static int calls, calls_elsewhere;

static int see_opening(sqlite3 *db, char **error, const struct sqlite3_api_routines *api)
{
	(void)db, (void)error, (void)api;
	calls++;
	calls_elsewhere += !is_opening;
	return SQLITE_OK;
}

/* The library reads a plan after the first sample of its statement. */
static void wait_for_plan(sqlite3 *db)
{
	const clock_t end = clock() + BURN_S * CLOCKS_PER_SEC;

	while (host_metric("plans_read") == 0 && clock() < end)
		host_int(db, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000)"
		             " SELECT count(*) FROM c");
	assert_true(host_metric("plans_read") > 0);
}

static void test_openings(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_auto_extension((void (*)(void))see_opening), SQLITE_OK);
	is_opening = true;
	db = host_open("");
	is_opening = false;
	assert_int_equal(host_int(db, "SELECT count(*) FROM sqlite_schema"), 0);
	wait_for_plan(db);
	assert_int_equal(calls, 1);
	assert_int_equal(calls_elsewhere, 0);
	assert_int_equal(sqlite3_cancel_auto_extension((void (*)(void))see_opening), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_openings) };

	host_begin(argc > 1 ? argv[1] : "loaded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
