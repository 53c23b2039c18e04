/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads with one connection: the second one's first query waits for SQLite's own mutex, which
 * the library does not follow before.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#define HOLD_NS 5000000

static sqlite3 *db;
static sem_t inside;
static pid_t second; /* atomic: its thread id */

static void must(const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error))
		fail_msg("%s: %s", sql, error);
}

/* Whether the thread waits in the kernel for a futex. */
static int is_waiting(pid_t thread)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)thread);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number == SYS_futex;
}

/* In the first thread's query: holds the connection until the second thread has waited for it. */
static void hold(sqlite3_context *context, int count, sqlite3_value **values)
{
	int seen = 0;

	(void)count, (void)values;
	sem_post(&inside);
	for (int i = 0; i < 20000 && seen < 3; i++) {
		pid_t thread = __atomic_load_n(&second, __ATOMIC_ACQUIRE);

		seen = thread && is_waiting(thread) ? seen + 1 : 0;
		usleep(1000);
	}
	usleep(HOLD_NS / 1000);
	sqlite3_result_int(context, seen);
}

static void *step_second(void *stmt)
{
	while (sem_wait(&inside))
		;
	__atomic_store_n(&second, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	sqlite3_step(stmt);
	sqlite3_reset(stmt);
	return NULL;
}

static void test_first_wait(void **state)
{
	sqlite3_stmt *holds, *waits, *row;
	pthread_t thread;

	(void)state;
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT hold()", -1, &holds, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT 'waits'", -1, &waits, NULL), SQLITE_OK);
	sem_init(&inside, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, step_second, waits), 0);
	assert_int_equal(sqlite3_step(holds), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(holds, 0), 3);
	sqlite3_finalize(holds);
	pthread_join(thread, NULL);
	sqlite3_finalize(waits);
	must("PRAGMA query_profiler_cpu_time_period_ns = 0");
	must("PRAGMA query_profiler_real_time_period_ns = 0");
	must("PRAGMA query_profiler_off_cpu_period_ns = 0");
	assert_int_equal(
		sqlite3_prepare_v2(
			db,
			"SELECT sum(mutex_wait_ns) FROM system.query_log WHERE query = 'SELECT ''waits'''",
			-1, &row, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	printf("waited %.1f ms\n", (double)sqlite3_column_int64(row, 0) / 1e6);
	assert_true(sqlite3_column_int64(row, 0) >= HOLD_NS);
	sqlite3_finalize(row);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_wait) };
	char *error = NULL;
	int failed;

	if (sqlite3_open_v2(":memory:", &db,
	                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL))
		return 1;
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	sqlite3_create_function(db, "hold", 0, SQLITE_UTF8, NULL, hold, NULL, NULL);
	must("PRAGMA log_queries_min_query_duration_ns = 0");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	sqlite3_close(db);
	return failed;
}
