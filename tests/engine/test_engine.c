/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiling an engine other than SQLite: its queries are in query_log and its samples in trace_log. The test
 * reads the trace file as any program can.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <queryprof.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"

static char path[] = "/tmp/queryprof-engine-XXXXXX";
static sqlite3 *file;

static int64_t ask(const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t number;

	assert_int_equal(qp_flush(10000), QP_OK);
	if (sqlite3_prepare_v2(file, sql, -1, &stmt, NULL) || sqlite3_step(stmt) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(file));
	number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}

static uint64_t run(const char *query, const char *id, int expected)
{
	const char *error;
	uint64_t result;
	int code = engine_run(query, id, &result, &error);

	if (code != expected)
		fail_msg("%s: %d %s", query, code, error);
	return result;
}

static int set_up(void **state)
{
	const qp_config config = { .size = sizeof(config), .trace_log_path = path };
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	/* Without the budget, because the tests count samples. */
	if (qp_init(&config) || qp_set(NULL, "query_profiler_max_overhead_percent", "0") ||
	    qp_set(NULL, "query_profiler_cpu_time_period_ns", "1000000"))
		fail_msg("%s", qp_error());
	return sqlite3_open(path, &file);
}

static int tear_down(void **state)
{
	char other[64];

	(void)state;
	sqlite3_close(file);
	qp_shutdown();
	unlink(path);
	for (const char *suffix = "-wal\0-shm\0"; *suffix; suffix += strlen(suffix) + 1) {
		snprintf(other, sizeof(other), "%s%s", path, suffix);
		unlink(other);
	}
	return 0;
}

static void test_simple(void **state)
{
	(void)state;
	assert_int_equal(run("sum 1000000000", "first", ENGINE_OK), 500000000500000000);
	assert_int_equal(
		ask("SELECT count(*) FROM query_log WHERE query = 'sum 1000000000' AND query_id = 'first' "
	            "AND "
	            "initial_query_id = 'first' AND database = 'numbers' AND type = 'QueryFinish' AND "
	            "library_path = '' AND cpu_time_ns BETWEEN 1000000 AND query_duration_ns"),
		1);
	assert_true(ask("SELECT count(*) FROM trace_log WHERE query_id = 'first'") > 10);
	assert_int_equal(ask("SELECT abs(sum(weight * period_ns) - cpu_time_ns) < 0.15 * cpu_time_ns FROM "
	                     "trace_log JOIN "
	                     "query_log USING (query_id) WHERE query_id = 'first'"),
	                 1);
}

static void test_nested(void **state)
{
	(void)state;
	run("both (sum 600000000) (both (sum 300000000) (sum 1))", "outer", ENGINE_OK);
	/* 'sum 1' has a row only if its thread lost the processor for 10 ms. */
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE initial_query_id = 'outer' AND query_id "
	                     "<> 'outer' AND query <> 'sum 1'"),
	                 3);
	/* each sample belongs to the innermost query */
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id = 'outer'") <= 2, 1);
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE initial_query_id = 'outer' AND query = "
	                     "'sum 600000000' "
	                     "AND samples_cpu > 5 AND samples_cpu = (SELECT count(*) FROM trace_log WHERE "
	                     "trace_log.query_id = query_log.query_id)"),
	                 1);
	assert_int_equal(ask("SELECT o.query_duration_ns >= i.ns FROM query_log AS o, (SELECT "
	                     "sum(query_duration_ns) AS ns "
	                     "FROM query_log WHERE query IN ('sum 600000000', 'sum 300000000')) AS i WHERE "
	                     "query_id = 'outer'"),
	                 1);
}

static void test_errors(void **state)
{
	(void)state;
	assert_int_equal(qp_set(NULL, "log_queries_min_query_duration_ns", "0"), QP_OK);
	run("both (sum 1) (fail for a reason)", "failing", ENGINE_FAILED);
	run("nonsense", NULL, ENGINE_SYNTAX);
	qp_set(NULL, "log_queries_min_query_duration_ns", "DEFAULT");
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE exception_code = 42 AND exception = 'for "
	                     "a reason' AND "
	                     "type = 'ExceptionWhileProcessing' AND initial_query_id = 'failing'"),
	                 2);
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE query = 'nonsense' AND exception = 'no "
	                     "such query' AND "
	                     "length(query_id) = 36 AND query_id GLOB '*-*-7*-[89ab]*-*'"),
	                 1);
}

/* The engine's stages appear in the host's trace, each under its query. */
static void test_spans(void **state)
{
	(void)state;
	assert_int_equal(qp_set(NULL, "log_queries_min_query_duration_ns", "0"), QP_OK);
	assert_int_equal(qp_trace_begin(NULL), QP_OK);
	run("both (sum 1) (sum 2)", "traced", ENGINE_OK);
	qp_trace_end();
	qp_set(NULL, "log_queries_min_query_duration_ns", "DEFAULT");
	assert_int_equal(ask("SELECT spans = 3 + 5 AND statements = 3 AND root = 'both (sum 1) (sum 2)' FROM "
	                     "traces"),
	                 1);
	assert_int_equal(ask("SELECT count(*) FROM span_log AS s JOIN span_log AS q ON q.span_id = "
	                     "s.parent_span_id JOIN span_log AS b ON b.span_id = q.parent_span_id JOIN "
	                     "span_log AS r ON r.span_id = b.parent_span_id WHERE s.operation_name = 'sum' "
	                     "AND q.operation_name LIKE 'sum _' AND b.operation_name = 'both' AND "
	                     "r.operation_name = 'both (sum 1) (sum 2)' AND r.parent_span_id = ''"),
	                 2);
}

/* A query of many threads does not become a span, because it may outlast the trace in which it begins. */
static void test_handle_in_a_trace(void **state)
{
	const qp_query query = { .size = sizeof(query), .text = "of many threads" };
	qp_query_handle *handle;

	(void)state;
	assert_int_equal(qp_trace_begin(NULL), QP_OK);
	handle = qp_query_start(&query);
	assert_non_null(handle);
	{
		QP_SPAN("beside the handle");
	}
	assert_int_equal(qp_query_finish(handle, 0, NULL), QP_OK);
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name = 'beside the handle' AND "
	                     "parent_span_id = ''"),
	                 1);
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name = 'of many threads'"), 0);
}

/* Worker threads run under the query's id: each has a row, and all samples have one id. */
static void test_threads(void **state)
{
	(void)state;
	run("threads 4 (sum 600000000)", "parallel", ENGINE_OK);
	assert_int_equal(
		ask("SELECT count(*) FROM query_log WHERE query_id = 'parallel' AND query = 'sum 600000000'"),
		4);
	assert_int_equal(ask("SELECT count(DISTINCT thread_id) FROM trace_log WHERE query_id = 'parallel' "
	                     "AND thread_id NOT IN "
	                     "(SELECT thread_id FROM query_log WHERE query LIKE 'threads 4%')"),
	                 4);
	assert_int_equal(
		ask("SELECT abs((SELECT sum(weight * period_ns) FROM trace_log WHERE query_id = 'parallel') "
	            "- "
	            "sum(cpu_time_ns)) < 0.15 * sum(cpu_time_ns) FROM query_log WHERE query_id = 'parallel'"),
		1);
}

/* If an engine stores its data in SQLite, its statements name the enclosing query. */
static void test_with_sqlite(void **state)
{
	const qp_query query = { .size = sizeof(query), .text = "stores", .query_id = "storing" };
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	if (qp_attach(db))
		fail_msg("%s", qp_error());
	assert_int_equal(qp_set(db, "query_profiler_cpu_time_period_ns", "1000000"), QP_OK);
	assert_int_equal(qp_query_begin(&query), QP_OK);
	assert_int_equal(
		sqlite3_exec(
			db,
			"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000) "
			"SELECT /* inside */ sum(x) FROM c",
			NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(qp_query_end(0, NULL), QP_OK);
	sqlite3_close(db);
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE query LIKE '%/* inside */%' AND "
	                     "initial_query_id = 'storing' "
	                     "AND query_id <> 'storing' AND library_path <> '' AND samples_cpu > 10"),
	                 1);
	assert_int_equal(
		ask("SELECT count(*) FROM query_log WHERE query_id = 'storing' AND library_path = ''"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_simple),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_with_sqlite),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_handle_in_a_trace),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
