/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that run repeatedly. State that the library keeps between runs must not outlive its statement.
 * Each run is counted for its own statement.
 */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 500

/* Reads system.statement_stats. */
static sqlite3 *observer;

static int64_t ask(const char *what, const char *texts)
{
	char *sql = sqlite3_mprintf("SELECT coalesce(sum(%s), 0) FROM system.statement_stats"
	                            " WHERE query GLOB %Q",
	                            what, texts);
	int64_t number = host_int(observer, sql);

	sqlite3_free(sql);
	return number;
}

/* Loads the library as an extension, so that the connection's settings can be changed. */
static sqlite3 *open_with_rows(void)
{
	sqlite3 *db = host_open("");
	char *error;

	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, host_library(), "sqlite3_queryprof_init", &error))
		fail_msg("%s", error);
	host_exec(db, "CREATE TABLE m(x); INSERT INTO m VALUES (1), (2), (3)");
	return db;
}

static void set(sqlite3 *db, const char *name, const char *value)
{
	char *sql = sqlite3_mprintf("UPDATE system.settings SET value = %s WHERE name = %Q", value, name);

	host_exec(db, sql);
	sqlite3_free(sql);
}

/* With the default threshold of hosts (10 ms), so that hardly any run has a row in query_log. */
static sqlite3 *open_without_lines(void)
{
	sqlite3 *db = open_with_rows();

	set(db, "log_queries_min_query_duration_ns", "10000000");
	return db;
}

/* Steps to the end or to the first row, and resets the statement. */
static void run(sqlite3_stmt *stmt, int to_end)
{
	while (sqlite3_step(stmt) == SQLITE_ROW && to_end)
		;
	sqlite3_reset(stmt);
}

static void test_in_turns(void **state)
{
	sqlite3 *db = open_without_lines();
	sqlite3_stmt *stmts[5];
	char sql[64];

	(void)state;
	for (int i = 0; i < 5; i++) {
		snprintf(sql, sizeof(sql), "SELECT x AS turn_%d FROM m", i);
		stmts[i] = host_prepare(db, sql);
	}
	for (int i = 0; i < 5 * RUNS; i++)
		run(stmts[i % 5], i % 5 < 3);
	for (int i = 0; i < 5; i++) {
		snprintf(sql, sizeof(sql), "*turn_%d *", i);
		assert_int_equal(ask("calls", sql), RUNS);
		assert_int_equal(ask("rows", sql), i < 3 ? 3 * RUNS : RUNS);
		assert_int_equal(ask("errors", sql), 0);
		assert_int_equal(ask("vm_steps", sql) % RUNS, 0);
		sqlite3_finalize(stmts[i]);
	}
	sqlite3_close(db);
}

/* The host may reset SQLite's counters of a statement. The library's counts stay correct. */
static void test_counters_reset(void **state)
{
	sqlite3 *db = open_without_lines();
	sqlite3_stmt *stmt = host_prepare(db, "SELECT x AS polled FROM m");

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		run(stmt, 1);
		assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1), 2);
		if (i % 2)
			sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
	}
	sqlite3_finalize(stmt);
	assert_int_equal(ask("fullscan_steps", "*polled*"), 2 * RUNS);
	assert_int_equal(ask("vm_steps", "*polled*") % RUNS, 0);
	sqlite3_close(db);
}

/* SQLite frees a statement and creates another one at the same address. The hooks see the finalize call of
 * one kind of statement, but not of the other. */
static void run_others(sqlite3 *db)
{
	char sql[64];

	for (int round = 0; round < 3; round++) {
		for (int i = 10; i < 60; i++) {
			snprintf(sql, sizeof(sql), "SELECT x AS seen_%d FROM m", i);
			sqlite3_finalize(host_prepare(db, sql));
			host_int(db, sql);
			snprintf(sql, sizeof(sql), "SELECT x AS unseen_%d FROM m", i);
			host_exec(db, sql);
		}
	}
	for (int i = 10; i < 60; i++) {
		snprintf(sql, sizeof(sql), "*seen_%d *", i);
		assert_int_equal(ask("calls", sql) % 6, 0); /* of seen_ and of unseen_ */
		assert_int_equal(ask("rows", sql), 2 * ask("calls", sql));
	}
	sqlite3_close(db);
}

static void test_another_at_the_address(void **state)
{
	(void)state;
	run_others(open_with_rows());
	assert_int_equal(ask("calls", "*seen_42 *"), 6);
	run_others(open_without_lines());
	assert_int_equal(ask("calls", "*seen_42 *"), 12);
}

static void test_settings_in_between(void **state)
{
	sqlite3 *db = open_with_rows();
	sqlite3_stmt *stmt = host_prepare(db, "SELECT x AS settled FROM m");
	static const char *const settings[][2] = {
		{ "log_queries", "0" },
		{ "log_queries", "1" },
		{ "query_profiler_cpu_time_period_ns", "0" },
		{ "query_profiler_real_time_period_ns", "0" },
		{ "query_profiler_cpu_time_period_ns", "1000000" },
	};
	static const int counted[] = { 0, 1, 1, 0, 1 };
	int64_t calls = 1;
	char *error, *sql;

	(void)state;
	run(stmt, 1); /* the run began when the statement was prepared */
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, host_library(), "sqlite3_queryprof_init", &error))
		fail_msg("%s", error);
	for (int i = 0; i < 5; i++) {
		sql = sqlite3_mprintf("UPDATE system.settings SET value = %s WHERE name = '%s'",
		                      settings[i][1], settings[i][0]);
		host_exec(db, sql);
		sqlite3_free(sql);
		for (int j = 0; j < 10; j++)
			run(stmt, 1);
		calls += 10 * counted[i];
		assert_int_equal(ask("calls", "*settled*"), calls);
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

static void set_periods(sqlite3 *db, const char *value)
{
	set(db, "query_profiler_cpu_time_period_ns", value);
	set(db, "query_profiler_real_time_period_ns", value);
	host_int(db, "SELECT 1"); /* the session notices the change */
}

/* The library does not see calls while nothing is sampled. Texts of this length get memory of their own,
 * which the next statement reuses. */
static void test_another_while_idle(void **state)
{
	sqlite3 *db = open_without_lines();
	sqlite3_stmt *stmt;
	char sql[2000];

	(void)state;
	set_periods(observer, "0");
	for (int i = 10; i < 30; i++) {
		snprintf(sql, sizeof(sql), "SELECT x AS watched_%d%1500sFROM m", i, "");
		stmt = host_prepare(db, sql);
		run(stmt, 1);
		set_periods(db, "0");
		sqlite3_finalize(stmt);
		snprintf(sql, sizeof(sql), "SELECT x AS resting_%d%1500sFROM m", i, "");
		stmt = host_prepare(db, sql);
		for (int j = 0; j < 3; j++)
			run(stmt, 1);
		set_periods(db, "1000000");
		run(stmt, 1);
		sqlite3_finalize(stmt);
	}
	set_periods(observer, "1000000");
	assert_int_equal(ask("calls", "*watched_*"), 20);
	assert_int_equal(ask("calls", "*resting_*"), 20);
	sqlite3_close(db);
}

/* More statements than the library keeps. */
static void test_many(void **state)
{
	enum { MANY = 3000 };
	sqlite3 *db = open_without_lines();
	sqlite3_stmt **stmts = calloc(MANY, sizeof(*stmts));
	int64_t untracked = host_metric("queries_untracked");
	char sql[64];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(sql, sizeof(sql), "SELECT x AS many_%d FROM m", i);
		stmts[i] = host_prepare(db, sql);
	}
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < MANY; i++)
			run(stmts[i], 0);
	assert_int_equal(ask("calls", "*many_*"), 3 * MANY);
	assert_int_equal(host_metric("queries_untracked"), untracked);
	for (int i = 0; i < MANY; i++)
		sqlite3_finalize(stmts[i]);
	free(stmts);
	sqlite3_close(db);
}

static void *run_ten(void *stmt)
{
	for (int i = 0; i < 10; i++)
		run(stmt, 1);
	return NULL;
}

/* Two threads use the session, one after the other. */
static void test_two_threads(void **state)
{
	sqlite3 *db = open_without_lines();
	sqlite3_stmt *stmt = host_prepare(db, "SELECT x AS handed FROM m");
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 5; i++) {
		run_ten(stmt);
		pthread_create(&thread, NULL, run_ten, stmt);
		pthread_join(thread, NULL);
	}
	sqlite3_finalize(stmt);
	assert_int_equal(ask("calls", "*handed*"), 100);
	assert_int_equal(ask("rows", "*handed*"), 300);
	sqlite3_close(db);
}

/* Every run has a row in query_log, with a query_id of its own. */
static void test_keys(void **state)
{
	sqlite3 *db = open_with_rows();
	sqlite3_stmt *stmt = host_prepare(db, "SELECT x AS keyed FROM m");

	(void)state;
	for (int i = 0; i < RUNS; i++)
		run(stmt, i % 2);
	sqlite3_finalize(stmt);
	assert_int_equal(host_int(observer, "SELECT count(DISTINCT query_id) FROM system.query_log"
	                                    " WHERE query GLOB '*keyed*' AND query NOT GLOB '*query_log*'"),
	                 RUNS);
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_turns),
		cmocka_unit_test(test_counters_reset),
		cmocka_unit_test(test_another_at_the_address),
		cmocka_unit_test(test_settings_in_between),
		cmocka_unit_test(test_another_while_idle),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_two_threads),
		cmocka_unit_test(test_keys),
	};
	char *error;

	host_begin(argv[1]);
	observer = host_open("");
	sqlite3_enable_load_extension(observer, 1);
	if (sqlite3_load_extension(observer, host_library(), "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
