/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.stack_trace with real stacks. It shows where each thread is, even if two sessions send requests at
 * the same time. A request does not shorten a query's waits.
 */
#include "host.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PLACES 8

static bool stop;
static int started;

/* Functions that differ only in their names. Each loops in itself. */
#define PLACE(number)                                                                                        \
	__attribute__((noinline)) void place_##number(sqlite3_context *context, int argc,                    \
	                                              sqlite3_value **argv);                                 \
	void place_##number(sqlite3_context *context, int argc, sqlite3_value **argv)                        \
	{                                                                                                    \
		(void)argc, (void)argv;                                                                      \
		__atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);                                           \
		while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))                                            \
			;                                                                                    \
		sqlite3_result_int(context, number);                                                         \
	}
PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)
PLACE(4)
PLACE(5)
PLACE(6)
PLACE(7)
static void (*const places[PLACES])(sqlite3_context *, int, sqlite3_value **) = {
	place_0, place_1, place_2, place_3, place_4, place_5, place_6, place_7,
};

static void *be_in_place(void *context)
{
	int number = (int)(intptr_t)context;
	sqlite3 *db = host_open(":memory:");

	assert_int_equal(
		sqlite3_create_function(db, "stay", 0, SQLITE_UTF8, NULL, places[number], NULL, NULL), 0);
	host_exec(db, "PRAGMA query_id = 'place %d'", number);
	assert_int_equal(host_int(db, "SELECT stay()"), number);
	host_close(db);
	return NULL;
}

#define QUESTIONS 10

static void *ask(void *context)
{
	sqlite3 *db = host_open(":memory:");

	(void)context;
	host_quiet(db);
	host_exec(db, "PRAGMA stack_trace_timeout_ms = 60000");
	for (int i = 0; i < QUESTIONS; i++) {
		/* The leaf is the place's function. */
		char *found =
			host_text(db, "SELECT group_concat(query_id || ': ' || (symbols->>0), ', ') FROM "
		                      "(SELECT query_id, symbols FROM system.stack_trace"
		                      " WHERE query_id LIKE 'place%%' AND NOT truncated ORDER BY 1)");

		assert_string_equal(found,
		                    "place 0: place_0, place 1: place_1, place 2: place_2, place 3: place_3, "
		                    "place 4: place_4, place 5: place_5, place 6: place_6, place 7: place_7");
		free(found);
	}
	/* The frames below the leaf are named as in trace_log. */
	assert_int_equal(host_int(db, "SELECT count(*) FROM system.stack_trace WHERE query_id LIKE 'place%%'"
	                              " AND symbols LIKE '%%\"sqlite3_step\"%%' AND traceToText(trace) LIKE "
	                              "'%%be_in_place%%'"),
	                 PLACES);
	host_close(db);
	return NULL;
}

static void test_known_places(void **state)
{
	pthread_t threads[PLACES], askers[2];

	(void)state;
	for (intptr_t i = 0; i < PLACES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_in_place, (void *)i), 0);
	while (__atomic_load_n(&started, __ATOMIC_ACQUIRE) < PLACES)
		usleep(1000);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&askers[i], NULL, ask, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(askers[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < PLACES; i++)
		pthread_join(threads[i], NULL);
}

/* --- waits ------------------------------------------------------------------ */

#define TIMEOUT_MS 700

static void *be_busy(void *context)
{
	sqlite3 *db = host_open(context);
	uint64_t start;

	sqlite3_busy_timeout(db, TIMEOUT_MS);
	start = host_now();
	assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES (1)", NULL, NULL, NULL), SQLITE_BUSY);
	printf("busy for %.1f ms of %d\n", (double)(host_now() - start) / 1e6, TIMEOUT_MS);
	assert_true(host_now() - start >= TIMEOUT_MS * 1000000ull);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	host_close(db);
	return NULL;
}

static void test_waits_are_kept(void **state)
{
	char path[512];
	sqlite3 *db;
	pthread_t waiter;
	int64_t asked;

	(void)state;
	snprintf(path, sizeof(path), "%s/busy.db", host_directory());
	db = host_open(path);
	host_quiet(db);
	host_exec(db, "CREATE TABLE t (x)");
	host_exec(db, "BEGIN EXCLUSIVE");
	stop = false;
	asked = host_metric(db, "signals_asked");
	assert_int_equal(pthread_create(&waiter, NULL, be_busy, path), 0);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		host_int(db, "SELECT count(*) FROM system.stack_trace");
	pthread_join(waiter, NULL);
	asked = host_metric(db, "signals_asked") - asked;
	printf("%lld stacks meanwhile\n", (long long)asked);
	assert_true(asked > 10);
	host_exec(db, "COMMIT");
	host_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_places),
		cmocka_unit_test(test_waits_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
