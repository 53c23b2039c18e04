/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads use one connection. The second thread's first query waits for SQLite's own mutex, which the
 * library does not observe yet. Another host locks that mutex itself outside queries.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "../lib/must.h"
#include "../lib/steal.h"

#define HOLD_NS 5000000

static sqlite3 *db;
static sem_t inside;
static pid_t second; /* thread id; atomic */

/* Returns whether the thread waits in the kernel for a futex. */
static int is_waiting(pid_t thread)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number == SYS_futex;
}

/* Runs in the first thread's query. Holds the connection until the second thread has waited for it. */
static void hold(sqlite3_context *context, int count, sqlite3_value **values)
{
	int seen = 0;

	(void)count, (void)values;
	sem_post(&inside);
	for (int i = 0; i < 300000 && seen < 3; i++) {
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
	must_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 0");
	must_exec(db, "PRAGMA query_profiler_real_time_period_ns = 0");
	must_exec(db, "PRAGMA query_profiler_off_cpu_period_ns = 0");
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

#define WORKERS 4
#define TURNS 6

static double waited[WORKERS]; /* seconds in the host's own sqlite3_mutex_enter() */

static double
	waited_first[WORKERS];  /* `waited` in each thread's first turn, which may precede its first query */
static double delayed[WORKERS]; /* time in run queues, at most; a thread may be there between the readings
                                 * of two clocks */
static pthread_barrier_t all_had_a_turn;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Seconds for which the calling thread was in run queues or a hypervisor used its processor. */
static double in_run_queues(void)
{
	unsigned long long ran = 0, delay = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");

	if (file && fscanf(file, "%llu %llu", &ran, &delay) != 2)
		delay = 0;
	if (file)
		fclose(file);
	return (double)delay / 1e9 + (double)stolen_ticks() / (double)sysconf(_SC_CLK_TCK);
}

/* As npm's sqlite3 does. The thread's first wait is its first use of SQLite. */
static void *work_by_hand(void *number)
{
	sqlite3_stmt *stmt;
	double start, delay;

	for (int turn = 0; turn < TURNS; turn++) {
		delay = in_run_queues();
		start = now();
		sqlite3_mutex_enter(sqlite3_db_mutex(db));
		waited[(intptr_t)number] += now() - start;
		delayed[(intptr_t)number] += in_run_queues() - delay;
		if (turn == 0)
			waited_first[(intptr_t)number] = waited[(intptr_t)number];
		/* The thread already holds the mutex, so the second call does not wait. */
		sqlite3_mutex_enter(sqlite3_db_mutex(db));
		sqlite3_prepare_v2(db, "SELECT nap()", -1, &stmt, NULL);
		sqlite3_step(stmt);
		sqlite3_finalize(stmt);
		sqlite3_mutex_leave(sqlite3_db_mutex(db));
		sqlite3_mutex_leave(sqlite3_db_mutex(db));
		if (turn == 0)
			pthread_barrier_wait(&all_had_a_turn);
	}
	return NULL;
}

static void nap(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count, (void)values;
	usleep(HOLD_NS / 1000);
	sqlite3_result_null(context);
}

static sqlite3_int64 number_of(const char *sql)
{
	sqlite3_stmt *row;
	sqlite3_int64 number;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	number = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return number;
}

/* Returns the seconds that the host waited on its own clock. */
static double wait_by_hand(void)
{
	pthread_t threads[WORKERS];
	double sum = 0;

	pthread_barrier_init(&all_had_a_turn, NULL, WORKERS);
	for (intptr_t i = 0; i < WORKERS; i++)
		if (pthread_create(&threads[i], NULL, work_by_hand, (void *)i))
			abort();
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		sum += waited[i];
	}
	return sum;
}

/* The waits agree with the host's own clock within 2 %, plus the time in run queues that the kernel
 * reports. A thread may be in a run queue between the readings of the host's clock and the library's. CPU
 * time is not part of a wait. */
static void test_by_hand(void **state)
{
	double sum, shown, logged, least;

	(void)state;
	must_exec(db, "PRAGMA query_profiler_real_time_period_ns = 1000000");
	must_exec(db, "BEGIN; CREATE TABLE t (a); INSERT INTO t VALUES (1)");
	sum = wait_by_hand();
	must_exec(db, "COMMIT");
	must_exec(db, "PRAGMA query_profiler_real_time_period_ns = 0");
#define OF_WAITS " WHERE query = 'sqlite3_mutex_enter()'"
	shown = (double)number_of("SELECT sum(execution_time_ns) FROM system.statement_stats" OF_WAITS) / 1e9;
	logged = (double)number_of("SELECT sum(mutex_wait_ns + cpu_time_ns) FROM system.query_log" OF_WAITS) /
	         1e9;
	printf("waited %.4f s; shown %.4f s, in query_log %.4f s\n", sum, shown, logged);
	assert_true(sum > (double)(WORKERS * HOLD_NS) / 1e9);
	least = sum * 0.98;
	for (int i = 0; i < WORKERS; i++)
		least -= delayed[i];
#ifdef __SANITIZE_THREAD__
	least = 0; /* its run-time library makes threads wait for each other between the two readings */
#endif
	assert_true(shown < sum * 1.02 && shown > least);
	assert_true(logged < sum * 1.02 && logged > least);
	assert_true(number_of("SELECT sum(calls) FROM system.statement_stats" OF_WAITS) <= WORKERS * TURNS);
	assert_int_equal(
		number_of("SELECT sum(calls) FROM system.statement_stats WHERE query = 'SELECT nap()'"),
		WORKERS * TURNS);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_wait),
		                            cmocka_unit_test(test_by_hand) };
	int failed;

	if (sqlite3_open_v2(":memory:", &db,
	                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL))
		return 1;
	sqlite3_create_function(db, "nap", 0, SQLITE_UTF8, NULL, nap, NULL, NULL);
	if (count > 1 && !strcmp(arguments[1], "by_hand")) { /* for test_by_hand.py */
		double sum = wait_by_hand(), later = sum;

		for (int i = 0; i < WORKERS; i++)
			later -= waited_first[i] + delayed[i];
		printf("%.9f %.9f\n", sum, later);
		sqlite3_close(db);
		return 0;
	}
	must_load(db, QUERYPROF_LIBRARY);
	sqlite3_create_function(db, "hold", 0, SQLITE_UTF8, NULL, hold, NULL, NULL);
	must_exec(db, "PRAGMA log_queries_min_query_duration_ns = 0");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	sqlite3_close(db);
	return failed;
}
