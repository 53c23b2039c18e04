/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads begin and end, the process forks, and connections open later. Nothing is left over, and nothing
 * breaks.
 */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int timers_of_process(void)
{
	FILE *file = fopen("/proc/self/timers", "r");
	char line[256];
	int count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += !strncmp(line, "ID:", 3);
	fclose(file);
	return count;
}

static void *short_life(void *context)
{
	sqlite3 *db;

	(void)context;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK); /* profiled automatically */
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
	              "PRAGMA query_profiler_real_time_period_ns = 1000000");
	host_exec(db, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2500) "
	              "SELECT sum(x) FROM c");
	host_close(db);
	return NULL;
}

static void test_thousand_threads(void **state)
{
	sqlite3 *db = host_open(":memory:");
	int64_t slots;

	(void)state;
	for (int round = 0; round < 50; round++) {
		pthread_t threads[20];

		for (int i = 0; i < 20; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, short_life, NULL), 0);
		for (int i = 0; i < 20; i++)
			pthread_join(threads[i], NULL);
	}
	host_quiet(db);
	slots = host_metric(db, "thread_slots");
	printf("after 1,000 threads: %d timers, %lld threads known, %lld slots, %lld samples\n",
	       timers_of_process(), (long long)host_metric(db, "threads"), (long long)slots,
	       (long long)host_int(db, "SELECT count(*) FROM trace_log"));
	assert_int_equal(host_metric(db, "threads"), 1);
	assert_true(timers_of_process() <= 2 + 8); /* this thread's timers, and slots of a shared timer */
	assert_int_equal(host_metric(db, "timers"), timers_of_process());
	assert_true(slots < 200); /* slots are reused */
	assert_true(host_int(db, "SELECT count(*) FROM trace_log") > 100);
	host_close(db);
}

/* Runs in a child. Profiles a query of its own, and reads the result. */
static int child_profiles(void)
{
	sqlite3 *db = host_open(":memory:");
	uint64_t burnt = 0;
	int64_t own;

	/* Repeats until a tick of the kernel hits it. On a busy machine it may lose the processor before a
	 * tick. */
	do {
		host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000");
		burnt += host_burn(db, 100000000, "child");
		host_quiet(db);
		own = host_int(db, "SELECT count(*) FROM trace_log WHERE process_id = %d", (int)getpid());
	} while (!own && burnt < 10000000000);
	if (!own)
		fprintf(stderr, "child without samples: %s\n",
		        host_text(db, "SELECT group_concat(metric || '=' || value, ' ') "
		                      "FROM system.metrics WHERE value <> 0 OR metric LIKE '%%error'"));
	host_close(db);
	return own > 0 ? 0 : 1;
}

static pid_t forked;

static void fork_inside(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	forked = fork();
	if (!forked)
		_exit(child_profiles());
	sqlite3_result_int(context, 1);
}

static void expect_good_child(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		fail_msg("the child ended with status 0x%x", status);
}

static void test_fork(void **state)
{
	char path[128];
	char *check;
	sqlite3 *db, *file;
	int64_t before, after;

	(void)state;
	db = host_open(":memory:");
	snprintf(path, sizeof(path), "%s/fork.trace", host_directory());
	host_exec(db, "PRAGMA trace_log_path = '%s'", path);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
	              "PRAGMA query_profiler_real_time_period_ns = 1000000");
	host_burn(db, 120000000, "parent");
	before = host_int(db, "SELECT count(*) FROM trace_log WHERE process_id = %d", (int)getpid());

	sqlite3_create_function(db, "fork_inside", 0, SQLITE_UTF8, NULL, fork_inside, NULL, NULL);
	host_exec(db, "SELECT fork_inside()");
	expect_good_child(forked);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(child_profiles());
		host_burn(db, 50000000, "parent");
		expect_good_child(child);
	}
	host_burn(db, 120000000, "parent");
	host_quiet(db);
	after = host_int(db, "SELECT count(*) FROM trace_log WHERE process_id = %d", (int)getpid());
	printf("parent: %lld samples before the forks, %lld after; of children %lld\n", (long long)before,
	       (long long)after,
	       (long long)host_int(db, "SELECT count(*) FROM trace_log WHERE process_id <> %d",
	                           (int)getpid()));
	assert_true(before > 50 && after > before + 50);
	host_exec(db, "PRAGMA trace_log_path = ''");
	host_close(db);

	assert_int_equal(sqlite3_open_v2(path, &file, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	check = host_text(file, "PRAGMA integrity_check");
	assert_string_equal(check, "ok");
	free(check);
	assert_int_equal(
		host_int(file, "SELECT count(*) FROM trace_log WHERE process_id = %d", (int)getpid()), after);
	host_close(file);
}

/* Samples reach the file even if no statement reads them through the library. */
static void test_stored_unasked(void **state)
{
	char path[128];
	sqlite3 *db = host_open(":memory:"), *file;
	int64_t stored = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/unasked.trace", host_directory());
	host_exec(
		db,
		"PRAGMA trace_log_flush_interval_ms = 10; PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
		"PRAGMA trace_log_path = '%s'",
		path);
	host_burn(db, 200000000, "unasked");
	assert_int_equal(sqlite3_open_v2(path, &file, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	sqlite3_busy_timeout(file, 300000);
	for (uint64_t start = host_now(); stored < 20 && host_now() - start < 300000000000u;
	     sqlite3_sleep(10))
		stored = host_int(file, "SELECT count(*) FROM trace_log");
	printf("%lld samples stored unasked\n", (long long)stored);
	assert_true(stored >= 20);
	host_close(file);
	host_exec(db, "PRAGMA trace_log_path = ''");
	host_close(db);
}

/* A closed connection leaves no session. */
static void test_connections_come_and_go(void **state)
{
	sqlite3 *db = host_open(":memory:");

	(void)state;
	for (int i = 0; i < 300; i++) {
		sqlite3 *other;

		assert_int_equal(sqlite3_open(":memory:", &other), SQLITE_OK);
		host_exec(other, "SELECT 1");
		host_close(other);
	}
	assert_int_equal(host_metric(db, "sessions"), 1);
	host_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thousand_threads),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_stored_unasked),
		cmocka_unit_test(test_connections_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
