/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples add up to the time: to the thread's CPU clock for a query that computes, and to the wall clock
 * for a query that sleeps for half of its time. The runs' own CPU times add up, too, even if other
 * processes use the processor in between.
 */
#include "host.h"
#include "../lib/busy.h"
#include "../lib/steal.h"
#include "../lib/ticks.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void check_within(const char *what, double sampled, double exact, double tolerance)
{
	printf("%-32s sampled %8.1f ms, exact %8.1f ms, ratio %.4f\n", what, sampled / 1e6, exact / 1e6,
	       sampled / exact);
	if (sampled < exact * (1 - tolerance) || sampled > exact * (1 + tolerance))
		fail_msg("%s: %.1f ms sampled, %.1f ms exact", what, sampled / 1e6, exact / 1e6);
}

#define PERIOD_NS 20e6

/* The test `accuracy` uses a period of 1 ms. Here 5 % is too narrow. The query's work is derived from a
 * guess of the machine's speed, so the query may be short, and the rest of its last period has no sample. */
static void test_cpu_20ms(void **state)
{
	static const char mark[] = "one query, period 20 ms";
	sqlite3 *db = host_open(":memory:");
	char *sql = host_burn_sql(1, "warm-up"), where[256];
	uint64_t start, exact;
	double millions;

	(void)state;
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 0");
	start = host_thread_cpu();
	host_exec(db, "%s", sql);
	millions = 1e9 / (double)(host_thread_cpu() - start);
	sqlite3_free(sql);

	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 20000000");
	sql = host_burn_sql(millions, mark);
	start = host_thread_cpu();
	host_exec(db, "%s", sql);
	exact = host_thread_cpu() - start;
	sqlite3_free(sql);

	host_quiet(db);
	snprintf(where, sizeof(where),
	         "trace_type = 'CPU' AND query_id = (SELECT query_id FROM system.query_log "
	         "WHERE query LIKE '%%%s%%')",
	         mark);
	check_within(mark, (double)host_sampled_ns(db, where), (double)exact,
	             0.01 + (PERIOD_NS + 2 * tick_ns()) / (double)exact);
	check_within("  its cpu_time_ns",
	             (double)host_int(db,
	                              "SELECT cpu_time_ns FROM system.query_log "
	                              "WHERE query LIKE '%%%s%%'",
	                              mark),
	             (double)exact, 0.05);
	host_close(db);
}

#define HELD_NS 500000000

static void *hold_lock(void *context)
{
	sqlite3 *db = context;
	struct timespec held = { 0, HELD_NS };

	while (nanosleep(&held, &held))
		;
	host_exec(db, "COMMIT");
	return NULL;
}

static void test_real_half_asleep(void **state)
{
	char path[128];
	sqlite3 *holder, *db;
	pthread_t thread;
	uint64_t start, exact;
	int64_t duration;
	char *sql;

	(void)state;
	snprintf(path, sizeof(path), "%s/half.db", host_directory());
	assert_int_equal(sqlite3_open(path, &holder), SQLITE_OK);
	host_exec(holder, "CREATE TABLE t(x)");
	db = host_open(path);
	host_exec(db, "SELECT * FROM t"); /* reads the schema, so that the step waits */
	host_exec(holder, "BEGIN EXCLUSIVE");
	sqlite3_busy_timeout(db, 300000);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 0;"
	              "PRAGMA query_profiler_real_time_period_ns = 1000000");

	assert_int_equal(pthread_create(&thread, NULL, hold_lock, holder), 0);
	sql = sqlite3_mprintf(
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000000) "
		"SELECT /* half asleep */ sum(x * 7 %% 13) + (SELECT count(*) FROM t) FROM c");
	start = host_now();
	host_exec(db, "%s", sql);
	exact = host_now() - start;
	pthread_join(thread, NULL);
	sqlite3_free(sql);
	host_quiet(db);
#define HALF_ASLEEP                                                                                          \
	"query_id = (SELECT query_id FROM system.query_log WHERE query LIKE '%/* half asleep */%')"
	/* Other processes may use the processor before and after the run. */
	duration = host_int(db, "%s", "SELECT query_duration_ns FROM system.query_log WHERE " HALF_ASLEEP);
	assert_in_range(duration, HELD_NS / 2, exact);
	check_within("half asleep, real time",
	             (double)host_sampled_ns(db, "trace_type = 'Real' AND " HALF_ASLEEP), (double)duration,
	             0.05);
	assert_int_equal(host_sampled_ns(db, "trace_type = 'CPU' AND " HALF_ASLEEP), 0);
	host_close(db);
	host_close(holder);
}

/* --- many short runs ---------------------------------------------------------------------- */

#define RIVALS 4

/* A thread is assumed to have run for this long since a reading of its clock (query/cpu_clock.h). If it
 * has not, the excess may fall between two runs, and is subtracted from the next run. */
#define TAKEN_NS 50000

static long count_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* CPU time within the runs, by the thread's CPU clock, as the program itself sees it. */
static uint64_t first_ns, within_ns;

/* read_clock(0) at the beginning of a run, and read_clock(1) at its end. */
static void read_clock(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	if (!sqlite3_value_int(values[0]))
		first_ns = host_thread_cpu();
	else
		within_ns += host_thread_cpu() - first_ns;
	sqlite3_result_int(context, 0);
}

/* Runs of about `us` microseconds, one after another. The sum of their CPU times is at least the time that
 * the program sees within them, and at most what the thread used. */
static void check_sum_of_runs(sqlite3 *db, double us, int count, const char *period_ns)
{
	sqlite3_stmt *stmt;
	char mark[64], *sql;
	uint64_t start, exact;
	unsigned long long stolen;
	int64_t sum;
	long switches;

	snprintf(mark, sizeof(mark), "%.0f us, period %s", us, period_ns);
	/* A million rows take about 0.1 s. */
	sql = sqlite3_mprintf(
		"SELECT /* %s */ read_clock(0), (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT "
		"x + 1 FROM c WHERE x < %d) SELECT sum(x * 7 %% 13) FROM c), read_clock(1)",
		mark, (int)(us * 10));
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	sqlite3_free(sql);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = %s", period_ns);
	within_ns = 0;
	switches = count_switches();
	stolen = stolen_ticks();
	start = host_thread_cpu();
	for (int i = 0; i < count; i++) {
		while (sqlite3_step(stmt) == SQLITE_ROW)
			;
		sqlite3_reset(stmt);
	}
	exact = host_thread_cpu() - start;
	switches = count_switches() - switches;
	stolen = stolen_ticks() - stolen;
	host_quiet(db);
	sqlite3_finalize(stmt);
#define OF_MARK " FROM system.query_log WHERE query LIKE '%%/* %s */%%'"
	assert_int_equal(host_int(db, "SELECT count(*)" OF_MARK, mark), count);
	assert_int_equal(host_int(db, "SELECT count(*)" OF_MARK " AND cpu_time_ns > query_duration_ns", mark),
	                 0);
	sum = host_int(db, "SELECT sum(cpu_time_ns)" OF_MARK, mark);
	printf("%-28s %d runs of %.1f us, %ld switches: %.4f of the thread's CPU time, of which %.4f was "
	       "seen within\n",
	       mark, count, (double)exact / count / 1e3, switches, (double)sum / (double)exact,
	       (double)within_ns / (double)exact);
	/* Stolen time is not a switch. Each switch costs at most TAKEN_NS. */
	assert_true((double)sum >
	                    0.99 * (double)within_ns - (double)switches * TAKEN_NS - stolen_ns(stolen) &&
	            (double)sum < 1.01 * (double)exact);
}

static void test_short_runs(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(busy_start(RIVALS), RIVALS);
	db = host_open(":memory:");
	host_exec(db, "PRAGMA log_queries_min_query_duration_ns = 0");
	sqlite3_create_function(db, "read_clock", 1, SQLITE_UTF8, NULL, read_clock, NULL, NULL);
	/* With a signal after each tick, and after few ticks. */
	check_sum_of_runs(db, 200, 600, "1000000");
	check_sum_of_runs(db, 200, 300, "1000000000");
	check_sum_of_runs(db, 20, 750, "1000000");
	busy_stop();
	host_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_20ms),
		cmocka_unit_test(test_real_half_asleep),
		cmocka_unit_test(test_short_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
