/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads use one connection, which SQLite allows in serialized mode. While one thread reads the
 * connection, another may free that memory.
 */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 400

static sqlite3 *shared;
static sqlite3_stmt *both;
static pthread_barrier_t together;

static void start_all(void *(*run)(void *), int count)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i), 0);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Every call sets or clears the connection's message. */
static void *fail_and_succeed(void *context)
{
	static const char *const scripts[] = {
		"SELECT abs(-9223372036854775807 - 1)",
		"SELECT no_such_column_at_all FROM t",
		"SELECT count(*) FROM t",
		"INSERT INTO t VALUES (1), (1); SELECT * FROM t LIMIT 2",
		"SELECT json('[' || x) FROM t",
		"ATTACH ':memory:' AS main",
	};

	for (int i = (int)(intptr_t)context; i < ROUNDS; i++) {
		sqlite3_stmt *stmt = NULL;
		const char *sql = scripts[i % 6];

		if (sqlite3_prepare_v2(shared, sql, -1, &stmt, NULL) == SQLITE_OK)
			while (sqlite3_step(stmt) == SQLITE_ROW)
				;
		sqlite3_finalize(stmt);
		sqlite3_exec(shared, sql, NULL, NULL, NULL);
	}
	return NULL;
}

static void test_messages(void **state)
{
	(void)state;
	shared = host_open("shared.db");
	host_exec(shared, "PRAGMA synchronous = OFF; CREATE TABLE t(x); INSERT INTO t VALUES (1)");
	start_all(fail_and_succeed, THREADS);
	assert_int_equal(sqlite3_close(shared), SQLITE_OK);
}

/* All threads step and reset the same statement. */
static void *step_both(void *context)
{
	for (int i = 0; i < ROUNDS * 5; i++) {
		int rc = sqlite3_step(both);

		if (rc != SQLITE_ROW && rc != SQLITE_DONE)
			return context;
		if (i % 7 == (int)(intptr_t)context)
			sqlite3_reset(both);
	}
	return NULL;
}

static void test_same_statement(void **state)
{
	(void)state;
	shared = host_open("");
	both = host_prepare(shared,
	                    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < "
	                    "20) SELECT x, randomblob(10) FROM c");
	start_all(step_both, THREADS);
	sqlite3_finalize(both);
	assert_int_equal(sqlite3_close(shared), SQLITE_OK);
}

/* As CPython's Connection.close() did: one thread finalizes the statement while another thread steps it.
 * SQLite keeps the connection until the step ends, and accesses nothing afterwards. */
static pthread_barrier_t inside;

static void wait_inside(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	pthread_barrier_wait(&inside);
	usleep(1000); /* lets the other thread reach the connection's mutex */
	sqlite3_result_int(context, 1);
}

static void *finalize_both(void *context)
{
	(void)context;
	pthread_barrier_wait(&inside);
	sqlite3_finalize(both);
	return NULL;
}

static void test_finalized_by_another(void **state)
{
	(void)state;
	pthread_barrier_init(&inside, NULL, 2);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		shared = host_open("");
		sqlite3_create_function(shared, "wait", 0, SQLITE_UTF8, NULL, wait_inside, NULL, NULL);
		both = host_prepare(shared, i % 2 ? "SELECT wait()" : "SELECT wait() WHERE wait() IS NULL");
		assert_int_equal(pthread_create(&thread, NULL, finalize_both, NULL), 0);
		sqlite3_step(both);
		pthread_join(thread, NULL);
		assert_int_equal(sqlite3_close(shared), SQLITE_OK);
	}
}

/* The last two statements of a closed connection end at the same time. */
static sqlite3_stmt *last[2];

static void *finalize_last(void *context)
{
	pthread_barrier_wait(&together);
	sqlite3_finalize(last[(intptr_t)context]);
	return NULL;
}

static void test_last_statements(void **state)
{
	int64_t before = host_metric("sessions");

	(void)state;
	pthread_barrier_init(&together, NULL, 2);
	for (int i = 0; i < ROUNDS; i++) {
		sqlite3 *db = host_open("");

		for (int j = 0; j < 2; j++) {
			last[j] = host_prepare(db, "VALUES (1), (2)");
			assert_int_equal(sqlite3_step(last[j]), SQLITE_ROW);
		}
		assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
		start_all(finalize_last, 2);
	}
	assert_int_equal(host_metric("sessions"), before);
}

/* Only one thread uses a connection, until a second thread uses it in the middle of the first thread's
 * scan. The runs of both end, and each is counted once. */
#define SCANS 300

static void scan(sqlite3_stmt *stmt)
{
	int rows = 0, rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		rows++;
	assert_int_equal(rc, SQLITE_DONE);
	assert_int_equal(rows, 300);
	sqlite3_reset(stmt);
}

static void *come_along(void *context)
{
	sqlite3_stmt *stmt = host_prepare(shared, "VALUES (1), (2)");

	pthread_barrier_wait(&together);
	for (volatile int i = 0; i < (int)(intptr_t)context; i++)
		;
	sqlite3_step(stmt);
	sqlite3_reset(stmt);
	sqlite3_finalize(stmt);
	return NULL;
}

static void test_comes_along(void **state)
{
	int64_t sessions = host_metric("sessions"), started, lost = host_metric("queries_lost");

	(void)state;
	pthread_barrier_init(&together, NULL, 2);
	for (int i = 0; i < SCANS; i++) {
		pthread_t thread;

		shared = host_open("");
		both = host_prepare(shared, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c"
		                            " WHERE x < 300) SELECT x FROM c");
		scan(both);
		started = host_metric("queries_started");
		assert_int_equal(pthread_create(&thread, NULL, come_along, (void *)(intptr_t)(i * 200)), 0);
		pthread_barrier_wait(&together);
		scan(both);
		pthread_join(thread, NULL);
		if (started)
			assert_int_equal(host_metric("queries_started") - started, 2);
		sqlite3_finalize(both);
		assert_int_equal(sqlite3_close(shared), SQLITE_OK);
	}
	assert_int_equal(host_metric("queries_lost"), lost);
	assert_int_equal(host_metric("sessions"), sessions);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_same_statement),
		cmocka_unit_test(test_finalized_by_another),
		cmocka_unit_test(test_last_statements),
		cmocka_unit_test(test_comes_along),
	};

	host_begin(argv[1]);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
