/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a query's time with more busy threads than processors: no time is counted twice.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "../lib/clock.h"
#include "../lib/must.h"
#include "../lib/sleeps.h"

#define RUNS 6
#define SLEEP_US 1000
#define BUSY_MAX 64
#define LEAST_NS 10000000 /* CPU time of a run */

static pid_t busy[BUSY_MAX];
static int busy_count;

static void start_busy(void)
{
	long count = 2 * sysconf(_SC_NPROCESSORS_ONLN);

	for (busy_count = 0; busy_count < count && busy_count < BUSY_MAX; busy_count++) {
		busy[busy_count] = fork();
		if (busy[busy_count] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				__asm__ volatile("");
		}
	}
}

static int end_busy(void **state)
{
	(void)state;
	while (busy_count != 0) {
		kill(busy[--busy_count], SIGKILL);
		waitpid(busy[busy_count], NULL, 0);
	}
	return 0;
}

/* Alternates between computing and sleeping. Returns the number of sleeps that were waits. */
static void work(sqlite3_context *context, int count, sqlite3_value **values)
{
	int waits = 0;

	(void)count, (void)values;
	for (int i = 0; i < 5; i++) {
		for (int64_t end = (int64_t)cpu_ns() + LEAST_NS / 5; (int64_t)cpu_ns() < end;)
			;
		waits += sleep_for_us(SLEEP_US);
	}
	sqlite3_result_int(context, waits);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *row;
	int64_t value;

	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) || sqlite3_step(row) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	value = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return value;
}

#define OF_RUNS " FROM system.query_log WHERE type = 'QueryFinish' AND query = 'SELECT work()'"
#define PARTS                                                                                                \
	"cpu_time_ns + lock_wait_ns + io_read_ns + io_write_ns + io_sync_ns + mutex_wait_ns + sleep_ns + "   \
	"other_wait_ns + run_delay_ns"

static void test_parts(void **state)
{
	int64_t waits[RUNS];
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	must_load(db, QUERYPROF_LIBRARY);
	sqlite3_exec(db, "PRAGMA query_profiler_off_cpu_period_ns = '1ms'", NULL, NULL, NULL);
	sqlite3_create_function(db, "work", 0, SQLITE_UTF8, NULL, work, NULL, NULL);
	start_busy();
	for (int i = 0; i < RUNS; i++)
		waits[i] = number(db, "SELECT work()");
	end_busy(NULL);
	print_message(
		"  of %.1f ms a run, %.1f ms computed, %.1f ms slept, %.1f ms in a queue, %.2f ms the rest\n",
		(double)number(db, "SELECT avg(execution_time_ns)" OF_RUNS) / 1e6,
		(double)number(db, "SELECT avg(cpu_time_ns)" OF_RUNS) / 1e6,
		(double)number(db, "SELECT avg(sleep_ns)" OF_RUNS) / 1e6,
		(double)number(db, "SELECT avg(run_delay_ns)" OF_RUNS) / 1e6,
		(double)number(db, "SELECT avg(rest_ns)" OF_RUNS) / 1e6);
	assert_int_equal(number(db, "SELECT count(*)" OF_RUNS " AND execution_time_ns >= 10000000"), RUNS);
	assert_int_equal(number(db, "SELECT count(*)" OF_RUNS " AND abs(" PARTS " + rest_ns - "
	                            "execution_time_ns) > execution_time_ns / 100"),
	                 0);
	/* Each run slept for almost as long as requested, and sometimes waited for a processor. */
	for (int i = 0; i < RUNS; i++) {
		char sql[200];

		snprintf(sql, sizeof(sql),
		         "SELECT sleep_ns" OF_RUNS
		         " ORDER BY query_start_time_microseconds LIMIT 1 OFFSET %d",
		         i);
		assert_true(number(db, sql) >= waits[i] * SLEEP_US * 900);
	}
	assert_true(number(db, "SELECT sum(run_delay_ns)" OF_RUNS) > 0);
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(test_parts, end_busy) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
