/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that contains SQLite, and has a seccomp filter and several threads, calls qp_attach(). The
 * threads must not be stopped, so the program's code cannot be patched. Tests the measurements that are left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h> /* before queryprof.h: qp_attach() is for the copy that is linked */

#include <dlfcn.h>
#include <pthread.h>
#include <queryprof.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/filter.h"
#include "../lib/spin.h"
#include "../lib/ticks.h"

static sqlite3 *attached(int flags)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | flags, NULL), SQLITE_OK);
	/* The budget is off because it takes fewer samples of a short query on a busy machine. */
	if (qp_attach(db) || qp_set(NULL, "query_profiler_max_overhead_percent", "0") ||
	    qp_set(db, "query_profiler_cpu_time_period_ns", "1000000"))
		fail_msg("%s", qp_error());
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	return stmt;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = prepare(db, sql);
	int64_t number;

	if (sqlite3_step(stmt) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}

static uint64_t cpu(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define BURN                                                                                                 \
	"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT /* %s */ "      \
	"sum(x) FROM c"
#define ROWS                                                                                                 \
	"SELECT /* rows */ v.column1, (WITH RECURSIVE c(x) AS (SELECT v.column1 UNION ALL SELECT x + 1 "     \
	"FROM c "                                                                                            \
	"WHERE x < 2000000) SELECT sum(x) FROM c) FROM (VALUES (1), (2), (3), (4)) AS v"

static void burn(sqlite3 *db, int count, const char *mark)
{
	char *sql = sqlite3_mprintf(BURN, count, mark);

	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_free(sql);
}

/* The query has as many samples as the ticks in its CPU time guarantee. */
static void expect_samples(sqlite3 *db, const char *mark)
{
	sqlite3_stmt *stmt = prepare(
		db, "SELECT cpu_time_ns, voluntary_switches + involuntary_switches + 1, (SELECT count(*) "
		    "FROM system.trace_log AS t WHERE t.query_id = q.query_id) FROM system.query_log AS q "
		    "WHERE query LIKE '%/* ' || ? || ' */%'");
	double cpu_ns, turns;
	int samples;

	sqlite3_bind_text(stmt, 1, mark, -1, NULL);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	cpu_ns = sqlite3_column_double(stmt, 0);
	turns = sqlite3_column_double(stmt, 1);
	samples = sqlite3_column_int(stmt, 2);
	sqlite3_finalize(stmt);
	printf("%s: %d samples, %.0f ms in %.0f turns\n", mark, samples, cpu_ns / 1e6, turns);
	assert_true(samples >= least_samples(cpu_ns, turns));
}

/* Rows name the SQLite in the program, not the shared library that is loaded as well. */
static void test_whose(void **state)
{
	void *shared = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_GLOBAL);
	sqlite3 *db, *later;

	(void)state;
	assert_non_null(shared);
	db = attached(SQLITE_OPEN_FULLMUTEX);
	burn(db, 1000000, "inside");
	assert_int_equal(sqlite3_open(":memory:", &later), SQLITE_OK); /* attached automatically */
	assert_int_equal(qp_set(later, "query_profiler_cpu_time_period_ns", "1000000"), QP_OK);
	burn(later, 1000000, "later");
	for (int i = 0; i < 2; i++) {
		sqlite3_stmt *stmt = prepare(
			db, "SELECT q.library_path, count(*), q.result_rows, q.exception_code, abs(1.0 * sum("
			    "t.weight * t.period_ns) - q.cpu_time_ns) < 0.2 * q.cpu_time_ns FROM "
			    "system.query_log q "
			    "JOIN system.trace_log t USING (query_id) WHERE q.query LIKE ?");
		sqlite3_bind_text(stmt, 1, i ? "%/* later */%" : "%/* inside */%", -1, NULL);
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		assert_non_null(
			strstr((const char *)sqlite3_column_text(stmt, 0), "test_attribution_static"));
		assert_int_equal(sqlite3_column_int(stmt, 4), 1);
		sqlite3_finalize(stmt);
		expect_samples(db, i ? "later" : "inside");
	}
	assert_int_equal(ask(db,
	                     "SELECT value LIKE '%its trace callback, because its code was not patched: a "
	                     "seccomp filter %' FROM system.metrics WHERE metric = 'libraries'"),
	                 1);
	sqlite3_close(later);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The program's work between two rows does not belong to the query because the program does not hold the
 * mutex then. A tick's periods, some ms on a busy machine, count for the code at the tick, so the rows take
 * longer than that. */
static void test_between_rows(void **state)
{
	sqlite3 *db = attached(SQLITE_OPEN_FULLMUTEX);
	sqlite3_stmt *stmt = prepare(db, ROWS);
	uint64_t inside = 0, outside = 0, start;
	int64_t sampled;

	(void)state;
	for (int i = 0; i < 4; i++) {
		start = cpu();
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		inside += cpu() - start;
		start = cpu();
		spin(100000000);
		outside += cpu() - start;
	}
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	sqlite3_finalize(stmt);
	sampled = ask(
		db,
		"SELECT sum(weight * period_ns) FROM system.trace_log WHERE query_id = (SELECT query_id FROM "
		"system.query_log WHERE query LIKE '%/* rows */%')");
	printf("%.1f ms inside, %.1f ms outside, %.1f ms sampled\n", (double)inside / 1e6,
	       (double)outside / 1e6, (double)sampled / 1e6);
	assert_true((double)sampled > 0.8 * (double)inside && (double)sampled < 1.2 * (double)inside);
	sqlite3_close(db);
}

/* SQLite's threads work for their query. The program's own threads do not, although both call the same
 * pthread_create(). */
static void *burn_alone(void *thread_id)
{
	uint64_t start = cpu();

	*(int *)thread_id = gettid();
	while (cpu() - start < 100000000)
		;
	return NULL;
}

static void test_threads(void **state)
{
	sqlite3 *db = attached(SQLITE_OPEN_FULLMUTEX);
	sqlite3_stmt *stmt = prepare(db, ROWS), *count;
	pthread_t thread;
	int thread_id;

	(void)state;
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_int_equal(pthread_create(&thread, NULL, burn_alone, &thread_id), 0);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	pthread_join(thread, NULL);
	sqlite3_finalize(stmt);
	assert_int_equal(
		sqlite3_exec(
			db,
			"PRAGMA threads = 4; PRAGMA cache_size = -1000; CREATE TABLE t(a, b);"
			"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000) "
			"INSERT INTO t SELECT x, hex(randomblob(12)) FROM c; CREATE INDEX i ON t(b)",
			NULL, NULL, NULL),
		SQLITE_OK);
	assert_true(ask(db, "SELECT worker_cpu_time_ns FROM system.query_log WHERE query LIKE ' CREATE "
	                    "INDEX%' OR query LIKE "
	                    "'CREATE INDEX%'") > 10000000);
	count = prepare(db, "SELECT count(*) FROM system.trace_log WHERE thread_id = ?");
	sqlite3_bind_int(count, 1, thread_id);
	assert_int_equal(sqlite3_step(count), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(count, 0), 0);
	sqlite3_finalize(count);
	sqlite3_close(db);
}

/* Counts the events of the program's own trace callback. */
struct seen {
	int statements, rows, closed, others;
};

static int on_event(unsigned event, void *context, void *subject, void *detail)
{
	struct seen *seen = context;

	(void)subject, (void)detail;
	seen->statements += event == SQLITE_TRACE_STMT;
	seen->rows += event == SQLITE_TRACE_ROW;
	seen->closed += event == SQLITE_TRACE_CLOSE;
	seen->others += event == SQLITE_TRACE_PROFILE;
	return 0;
}

static void test_trace(void **state)
{
	sqlite3 *db = attached(SQLITE_OPEN_FULLMUTEX), *other;
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(
		qp_trace(db, SQLITE_TRACE_STMT | SQLITE_TRACE_ROW | SQLITE_TRACE_CLOSE, on_event, &seen),
		QP_OK);
	burn(db, 1000000, "traced");
	assert_int_equal(seen.statements, 1);
	assert_int_equal(seen.rows, 1);
	assert_int_equal(seen.others, 0); /* which it did not request */
	expect_samples(db, "traced");
	assert_int_equal(qp_trace(db, 0, NULL, NULL), QP_OK);
	seen = (struct seen){ 0 };
	burn(db, 300000, "traced no more");
	assert_int_equal(seen.statements, 0);
	assert_true(
		ask(db, "SELECT count(*) FROM system.query_log WHERE query LIKE '%/* traced no more */%'") ==
		1);
	assert_int_equal(qp_trace(db, SQLITE_TRACE_CLOSE, on_event, &seen), QP_OK);
	sqlite3_close(db);
	assert_int_equal(seen.closed, 1);
	assert_int_equal(sqlite3_open(":memory:", &other), SQLITE_OK);
	sqlite3_close(other);
	assert_int_equal(qp_trace(other, 0, NULL, NULL), QP_INVALID);
}

/* A statement after a comment is not taken for a trigger, and does not get the error of the statement before
 * it. */
static void test_statements(void **state)
{
	sqlite3 *db = attached(SQLITE_OPEN_FULLMUTEX);
	sqlite3_stmt *bad, *good;

	(void)state;
	assert_int_equal(qp_set(db, "log_queries_min_query_duration_ns", "0"), QP_OK);
	assert_int_equal(
		sqlite3_exec(
			db,
			"CREATE TABLE noted(x); CREATE TABLE u(x); CREATE TRIGGER r AFTER INSERT ON noted "
			"BEGIN INSERT INTO u VALUES (new.x); END",
			NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "-- what it is for\nINSERT INTO noted VALUES (1)", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(ask(db,
	                     "SELECT count(*) FROM system.query_log WHERE query LIKE '%INSERT INTO noted%' "
	                     "AND query NOT LIKE '%CREATE%'"),
	                 1);
	assert_int_equal(ask(db, "SELECT count(*) FROM system.query_log WHERE query LIKE '%INSERT INTO u%' "
	                         "AND query NOT LIKE '%CREATE%'"),
	                 0);
	bad = prepare(db, "SELECT abs(-9223372036854775807 - 1)");
	good = prepare(db, "INSERT INTO u VALUES (2)");
	assert_int_equal(sqlite3_step(bad), SQLITE_ERROR);
	assert_int_equal(sqlite3_step(good), SQLITE_DONE);
	sqlite3_finalize(bad);
	sqlite3_finalize(good);
	assert_int_equal(
		ask(db,
	            "SELECT exception_code FROM system.query_log WHERE query = 'INSERT INTO u VALUES (2)'"),
		0);
	sqlite3_close(db);
}

/* No wrapper sees the PRAGMA before SQLite, so the trace callback sets the value. */
static void test_pragma(void **state)
{
	static const char *const paths[] = { ":memory:", "" }; /* "" is a file */

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		sqlite3 *db;
		sqlite3_stmt *stmt;

		assert_int_equal(sqlite3_open(paths[i], &db), SQLITE_OK);
		assert_int_equal(qp_attach(db), QP_OK);
		stmt = prepare(db, "PRAGMA query_profiler_cpu_time_period_ns = '1ms'");
		for (int again = 0; again < 2; again++) {
			assert_int_equal(qp_set(db, "query_profiler_cpu_time_period_ns", "DEFAULT"), QP_OK);
			assert_int_equal(ask(db, "PRAGMA system.query_profiler_cpu_time_period_ns"),
			                 10000000);
			assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
			assert_int_equal(ask(db, "PRAGMA system.query_profiler_cpu_time_period_ns"), 1000000);
			sqlite3_reset(stmt);
		}
		sqlite3_finalize(stmt);
		assert_int_equal(sqlite3_exec(db, "PRAGMA log_queries = 17", NULL, NULL, NULL), SQLITE_OK);
		assert_int_equal(ask(db, "PRAGMA system.log_queries"), 1);
		assert_int_equal(ask(db,
		                     "SELECT value LIKE 'log_queries = 17: expected %' FROM system.metrics "
		                     "WHERE metric = 'settings_error'"),
		                 1);
		assert_int_equal(sqlite3_exec(db, "PRAGMA system.log_queries = 17", NULL, NULL, NULL),
		                 SQLITE_ERROR);
		assert_int_equal(sqlite3_exec(db, "PRAGMA system.typo = 1", NULL, NULL, NULL), SQLITE_ERROR);
		assert_non_null(strstr(sqlite3_errmsg(db), "system.typo: neither a setting nor a PRAGMA"));
		assert_int_equal(
			sqlite3_exec(db, "PRAGMA system.user_version; PRAGMA typo = 1", NULL, NULL, NULL),
			SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, "UPDATE system.settings SET value = 1 WHERE name = 'typo'",
		                              NULL, NULL, NULL),
		                 SQLITE_ERROR);
		assert_int_equal(sqlite3_exec(db, "DROP TABLE system.trace_log", NULL, NULL, NULL),
		                 SQLITE_READONLY);
		sqlite3_close(db);
	}
}

static void *wait_for_ever(void *argument)
{
	for (;;)
		pause();
	return argument;
}

int main(void)
{
	pthread_t thread;

	if (!filter_system_calls() || pthread_create(&thread, NULL, wait_for_ever, NULL))
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose),      cmocka_unit_test(test_between_rows),
		cmocka_unit_test(test_threads),    cmocka_unit_test(test_trace),
		cmocka_unit_test(test_statements), cmocka_unit_test(test_pragma),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
