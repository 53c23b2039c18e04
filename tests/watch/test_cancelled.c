/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's first query runs in a thread that is being cancelled by pthread_cancel(). A statement
 * without files has no cancellation point. The library completes the work that it starts there.
 */
#include "host.h"

#include <pthread.h>
#include <stdbool.h>

static bool has_run;

static void *query_while_cancelled(void *db)
{
	pthread_cancel(pthread_self());
	host_exec(db, "SELECT 1");
	has_run = true;
	pthread_testcancel();
	return NULL;
}

static void test_first_query(void **state)
{
	sqlite3 *db = host_open("");
	pthread_t thread;
	void *result;
	char byte;

	(void)state;
	sqlite3_randomness(sizeof(byte), &byte); /* SQLite opens a file for the first random number */
	assert_int_equal(pthread_create(&thread, NULL, query_while_cancelled, db), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(has_run);
	host_exec(db, "SELECT 2");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_query) };

	host_begin(argc > 1 ? argv[1] : "recorded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
