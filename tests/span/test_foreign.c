/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that name a trace of another program or library become spans of that trace.
 */
#include <queryprof.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define OTHER_TRACE "4bf92f3577b34da6a3ce929d0e0e4737"
#define LAST_TRACE "4bf92f3577b34da6a3ce929d0e0e4738"
#define SPAN "00f067aa0ba902b7"
#define PARENT(trace) "00-" trace "-" SPAN "-01"
#define COMMENT(trace) " /*traceparent='" PARENT(trace) "'*/"

static sqlite3 *db;

static void run(const char *sql, int expected)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != expected)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static int set_up(void **state)
{
	set_up_file(state);
	set("log_queries_min_query_duration_ns", "0"); /* applies to connections opened later */
	if (sqlite3_open(":memory:", &db) || qp_attach(db))
		fail_msg("%s", qp_error());
	return 0;
}

static int tear_down(void **state)
{
	sqlite3_close(db);
	return tear_down_file(state);
}

static void by_comments(void **state)
{
	(void)state;
	run("CREATE TABLE t (x UNIQUE)", SQLITE_OK);
	run("INSERT INTO t VALUES (1)" COMMENT(TRACE), SQLITE_OK);
	run("INSERT INTO t VALUES (1)" COMMENT(TRACE), SQLITE_CONSTRAINT);
	run("INSERT INTO t VALUES (2)", SQLITE_OK);
	assert_string_equal(ask_text("SELECT group_concat(status || ' ' || kind, ', ') FROM (SELECT s.* FROM "
	                             "span_log AS s JOIN query_log AS q USING (query_id) WHERE s.trace_id = "
	                             "'" TRACE "' AND s.parent_span_id = '" SPAN "' AND s.duration_ns = "
	                             "q.query_duration_ns AND s.operation_name = q.query AND s.thread_id = "
	                             "q.thread_id ORDER BY s.start_time_ns)"),
	                    "UNSET INTERNAL, ERROR INTERNAL");
	assert_int_equal(ask("SELECT count(*) FROM span_log"), 2);
	/* There is one trace, from the first statement's start to the last one's end. */
	assert_int_equal(ask("SELECT count(*) FROM traces"), 1);
	assert_int_equal(ask("SELECT spans = 2 AND statements = 2 AND trace_id = '" TRACE
	                     "' AND duration_ns = "
	                     "(SELECT max(finish_time_ns) - min(start_time_ns) FROM span_log) AND root LIKE "
	                     "'INSERT INTO t VALUES (1) /*traceparent=%' FROM traces"),
	                 1);
}

/* The statement is also a span of the program's own trace. */
static void beside_ones_own(void **state)
{
	(void)state;
	assert_int_equal(qp_trace_begin(NULL), QP_OK);
	run("SELECT 1 AS beside" COMMENT(OTHER_TRACE), SQLITE_OK);
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name LIKE 'SELECT 1 AS beside%'"),
	                 2);
	assert_int_equal(
		ask("SELECT count(*) FROM span_log WHERE operation_name LIKE 'SELECT 1 AS beside%' AND "
	            "trace_id = '" OTHER_TRACE "' AND parent_span_id = '" SPAN "'"),
		1);
}

/* If the program has begun the trace with the same id, the statement is already in it. */
static void not_twice(void **state)
{
	int64_t newest;

	(void)state;
	assert_int_equal(qp_trace_begin(PARENT(LAST_TRACE)), QP_OK);
	{
		QP_SPAN("request");
		run("SELECT 1 AS once" COMMENT(LAST_TRACE), SQLITE_OK);
		/* Even if the statement is stored before the trace ends. */
		assert_int_equal(qp_flush(60000), QP_OK);
		newest = ask("SELECT max(id) FROM span_batches");
	}
	qp_trace_end();
	/* A reader that follows the file has read all rows up to this number. */
	assert_true(ask("SELECT max(id) FROM span_batches") > newest);
	assert_string_equal(
		ask_text("SELECT group_concat(p.operation_name) FROM span_log AS s JOIN span_log AS "
	                 "p ON p.span_id = s.parent_span_id WHERE s.operation_name LIKE 'SELECT 1 "
	                 "AS once%'"),
		"request");
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name LIKE 'SELECT 1 AS once%'"),
	                 1);
	assert_int_equal(
		ask("SELECT count(*) FROM traces WHERE trace_id = '" LAST_TRACE "' AND root = 'request'"), 1);
}

static void by_labels(void **state)
{
	(void)state;
	assert_int_equal(qp_set_label(db, "traceparent", PARENT("000000000000000000000000000000aa")), QP_OK);
	run("SELECT 1 AS labelled", SQLITE_OK);
	assert_int_equal(qp_set_label(db, "traceparent", NULL), QP_OK);
	run("SELECT 1 AS bare", SQLITE_OK);
	assert_string_equal(ask_text("SELECT group_concat(operation_name) FROM span_log WHERE trace_id = "
	                             "'000000000000000000000000000000aa' AND parent_span_id = '" SPAN "'"),
	                    "SELECT 1 AS labelled");
}

static void as_the_rules_say(void **state)
{
	(void)state;
	set("trace_keep", "slow");
	set("trace_keep_min_duration_ns", "3600s");
	run("SELECT 1 AS boring" COMMENT(TRACE), SQLITE_OK);
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name LIKE '%boring%'"), 0);
	set("trace_keep", "random");
	set("trace_keep_one_of", "1");
	run("SELECT 1 AS chosen" COMMENT(TRACE), SQLITE_OK);
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name LIKE '%chosen%'"), 1);
	set("trace_keep", "DEFAULT");
	set("trace_keep_min_duration_ns", "DEFAULT");
	set("trace_keep_one_of", "DEFAULT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_comments),      cmocka_unit_test(beside_ones_own),
		cmocka_unit_test(not_twice),        cmocka_unit_test(by_labels),
		cmocka_unit_test(as_the_rules_say),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
