/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a static SQLite loads queryprof while its threads already use SQLite. The library stops the
 * threads while it patches the code, and sees their later calls as usual. Each test has a child, because a
 * process is patched only once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h> /* before queryprof.h, because qp_attach() is for the linked copy */

#include <pthread.h>
#include <queryprof.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define RUNS 50

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                              \
			_exit(9);                                                                            \
		}                                                                                            \
	} while (0)

static int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t number;

	CHECK(!sqlite3_prepare_v2(db, sql, -1, &stmt, NULL));
	CHECK(sqlite3_step(stmt) == SQLITE_ROW);
	number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}

/* How many of the other threads wait, and whether they may continue. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int waiting;
	bool may_go;
} now = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false };

static void wait_for_main(void)
{
	pthread_mutex_lock(&now.mutex);
	now.waiting++;
	pthread_cond_broadcast(&now.changed);
	while (!now.may_go)
		pthread_cond_wait(&now.changed, &now.mutex);
	pthread_mutex_unlock(&now.mutex);
}

static void on_wait(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count, (void)values;
	wait_for_main();
	sqlite3_result_int(context, 1);
}

static bool waits_inside, is_busy;
static volatile bool is_over;

static void *work(void *unused)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;

	CHECK(!sqlite3_open(":memory:", &db));
	CHECK(!sqlite3_create_function(db, "wait_for_main", 0, SQLITE_UTF8, NULL, on_wait, NULL, NULL));
	CHECK(ask(db, "SELECT 1") == 1);
	if (waits_inside)
		CHECK(ask(db, "SELECT wait_for_main()") == 1);
	else if (!is_busy)
		wait_for_main();
	while (is_busy && !is_over) {
		CHECK(ask(db, "SELECT 41 + 1") == 42);
		for (volatile int away = 0; away < 10000; away++)
			;
	}
	sqlite3_close(db);
	/* A connection that is opened later has queryprof. */
	CHECK(!sqlite3_open(":memory:", &db));
	CHECK(!qp_set(db, "log_queries_min_query_duration_ns", "0"));
	CHECK(!sqlite3_prepare_v2(db, "SELECT ?1 + 1", -1, &stmt, NULL));
	for (int i = 0; i < RUNS; i++) {
		sqlite3_bind_int(stmt, 1, i);
		CHECK(sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) == i + 1);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	CHECK(!sqlite3_close(db));
	return unused;
}

/* A statement that is only traced has no plan. The reason is known after one of its runs had a sample. */
static void expect_reason(sqlite3 *db)
{
	CHECK(!qp_set(db, "query_profiler_cpu_time_period_ns", "1000000"));
	while (!ask(db, "SELECT value FROM system.metrics WHERE metric = 'plans_of_traced_statements'"))
		ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
		        " SELECT sum(i) FROM n");
	CHECK(!ask(db, "SELECT value FROM system.metrics WHERE metric = 'plans_of_unknown_layouts'"));
}

/* `way`: how the library is to watch the copy; NULL: in any way. */
static void load_late(const char *way)
{
	pthread_t threads[THREADS];
	sqlite3_stmt *stmt;
	sqlite3 *db;

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, NULL));
	pthread_mutex_lock(&now.mutex);
	while (!is_busy && now.waiting < THREADS)
		pthread_cond_wait(&now.changed, &now.mutex);
	pthread_mutex_unlock(&now.mutex);
	CHECK(!sqlite3_open(":memory:", &db));
	CHECK(!qp_attach(db));
	CHECK(!qp_set(db, "log_queries_min_query_duration_ns", "0"));
	pthread_mutex_lock(&now.mutex);
	now.may_go = true;
	pthread_cond_broadcast(&now.changed);
	pthread_mutex_unlock(&now.mutex);
	is_over = true;
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!sqlite3_prepare_v2(db,
	                          "SELECT value, value LIKE ? FROM system.metrics WHERE metric = 'libraries'",
	                          -1, &stmt, NULL));
	sqlite3_bind_text(stmt, 1, way ? way : "%", -1, NULL);
	CHECK(sqlite3_step(stmt) == SQLITE_ROW);
	fprintf(stderr, "%s\n", sqlite3_column_text(stmt, 0));
	CHECK(sqlite3_column_int(stmt, 1));
	sqlite3_finalize(stmt);
	CHECK(ask(db, "SELECT count(*) FROM system.query_log WHERE query = 'SELECT ?1 + 1'") ==
	      THREADS * RUNS);
	if (waits_inside)
		expect_reason(db);
	CHECK(!sqlite3_close(db));
}

static bool succeeds_in_child(const char *way)
{
	int status;
	pid_t child = fork();

	if (!child) {
		load_late(way);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

/* On a loaded machine a thread may not stop in time, so there are several attempts. */
static void test_outside(void **state)
{
	int attempts = 10;

	(void)state;
	while (attempts && !succeeds_in_child("%: patched code"))
		attempts--;
	assert_true(attempts);
}

static void test_inside(void **state)
{
	(void)state;
	waits_inside = true;
	assert_true(succeeds_in_child("%: its trace callback, because its code was not patched: a%thread %"));
	waits_inside = false;
}

/* Whether the code is patched or not, the threads' results are right, and the library sees them. */
static void test_busy(void **state)
{
	(void)state;
	is_busy = true;
	for (int i = 0; i < 5; i++)
		assert_true(succeeds_in_child(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_outside), cmocka_unit_test(test_inside),
		                            cmocka_unit_test(test_busy) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
