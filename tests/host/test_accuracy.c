/*
 * The samples add up to the time: against the thread's CPU clock for a query that
 * computes, against the wall clock for one that is half asleep in a busy wait.
 */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static void check_within(const char *what, double sampled, double exact, double tolerance)
{
	printf("%-32s sampled %8.1f ms, exact %8.1f ms, ratio %.4f\n", what, sampled / 1e6, exact / 1e6,
	       sampled / exact);
	if (sampled < exact * (1 - tolerance) || sampled > exact * (1 + tolerance))
		fail_msg("%s: %.1f ms sampled, %.1f ms exact", what, sampled / 1e6, exact / 1e6);
}

static void check_cpu(const char *period_ns)
{
	sqlite3 *db = host_open(":memory:");
	char *sql = host_burn_sql(1, "warm-up"), mark[64], where[256];
	uint64_t start, exact;
	double millions;

	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 0");
	start = host_thread_cpu();
	host_exec(db, "%s", sql);
	millions = 2e9 / (double)(host_thread_cpu() - start);
	sqlite3_free(sql);

	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = %s", period_ns);
	snprintf(mark, sizeof mark, "one query, period %s", period_ns);
	sql = host_burn_sql(millions, mark);
	start = host_thread_cpu();
	host_exec(db, "%s", sql);
	exact = host_thread_cpu() - start;
	sqlite3_free(sql);

	host_quiet(db);
	snprintf(where, sizeof where,
	         "trace_type = 'CPU' AND query_id = (SELECT query_id FROM system.query_log "
	         "WHERE query LIKE '%%%s%%')",
	         mark);
	check_within(mark, (double)host_sampled_ns(db, where), (double)exact, 0.05);
	check_within("  its cpu_time_ns",
	             (double)host_int(db,
	                              "SELECT cpu_time_ns FROM system.query_log "
	                              "WHERE query LIKE '%%%s%%'",
	                              mark),
	             (double)exact, 0.05);
	host_close(db);
}

static void test_cpu_1ms(void **state)
{
	(void)state;
	check_cpu("1000000");
}

static void test_cpu_20ms(void **state)
{
	(void)state;
	check_cpu("20000000");
}

static void *hold_lock(void *context)
{
	sqlite3 *db = context;
	struct timespec two_seconds = { 2, 0 };

	while (nanosleep(&two_seconds, &two_seconds))
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
	char *sql;

	(void)state;
	snprintf(path, sizeof path, "%s/half.db", host_directory());
	assert_int_equal(sqlite3_open(path, &holder), SQLITE_OK);
	host_exec(holder, "CREATE TABLE t(x)");
	db = host_open(path);
	host_exec(db, "SELECT * FROM t"); /* reads the schema, so that it is the step that waits */
	host_exec(holder, "BEGIN EXCLUSIVE");
	sqlite3_busy_timeout(db, 20000);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 0;"
	              "PRAGMA query_profiler_real_time_period_ns = 1000000");

	assert_int_equal(pthread_create(&thread, NULL, hold_lock, holder), 0);
	sql = sqlite3_mprintf(
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 12000000) "
		"SELECT /* half asleep */ sum(x * 7 %% 13) + (SELECT count(*) FROM t) FROM c");
	start = host_now();
	host_exec(db, "%s", sql);
	exact = host_now() - start;
	pthread_join(thread, NULL);
	sqlite3_free(sql);
	host_quiet(db);
#define HALF_ASLEEP                                                                                          \
	"query_id = (SELECT query_id FROM system.query_log WHERE query LIKE '%/* half asleep */%')"
	check_within("half asleep, real time",
	             (double)host_sampled_ns(db, "trace_type = 'Real' AND " HALF_ASLEEP), (double)exact,
	             0.05);
	assert_int_equal(host_sampled_ns(db, "trace_type = 'CPU' AND " HALF_ASLEEP), 0);
	host_close(db);
	host_close(holder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_1ms),
		cmocka_unit_test(test_cpu_20ms),
		cmocka_unit_test(test_real_half_asleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
