/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An automatic extension of the host's that relies on what the host does around its openings: the library
 * opens no connection of its own then.
 */
#include "host.h"

#include <stdbool.h>

static __thread bool is_opening;
static int calls, calls_elsewhere;

static int see_opening(sqlite3 *db, char **error, const struct sqlite3_api_routines *api)
{
	(void)db, (void)error, (void)api;
	calls++;
	calls_elsewhere += !is_opening;
	return SQLITE_OK;
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
