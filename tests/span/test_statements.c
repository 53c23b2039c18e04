/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements are spans of the thread's trace with the times of query_log. Each sample names the span that
 * was open.
 */
#include <queryprof.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/must.h"
#include "support.h"

static sqlite3 *db;

/* Needs at most about 2 s of CPU time on a slow machine. */
#define LONG                                                                                                 \
	"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000000) SELECT sum(x) "   \
	"FROM c"

static void begin(void)
{
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
}

static jmp_buf out;

/* An SQL function of the host, with a span of its own inside the statement. */
static void probe(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	QP_SPAN("in the function");

	if (argc && sqlite3_value_int(argv[0]) == 4711)
		longjmp(out, 1);
	sqlite3_result_int(context, 42);
}

static int set_up(void **state)
{
	set_up_file(state);
	if (sqlite3_open(":memory:", &db) || qp_attach(db))
		fail_msg("%s", qp_error());
	return sqlite3_create_function(db, "probe", -1, SQLITE_UTF8, NULL, probe, NULL, NULL);
}

static int tear_down(void **state)
{
	sqlite3_close(db);
	return tear_down_file(state);
}

#define OF(root) "trace_id = (SELECT trace_id FROM traces WHERE root = '" root "')"

static void are_spans_of_the_trace(void **state)
{
	(void)state;
	set("log_queries_min_query_duration_ns", "0");
	begin();
	{
		QP_SPAN("request");
		must_exec(db, "SELECT 1 AS first");
		must_exec(db, "SELECT 2 AS second");
	}
	qp_trace_end();
	set("log_queries_min_query_duration_ns", "DEFAULT");
	must_exec(db, "SELECT 3 AS outside");
	assert_string_equal(ask_text("SELECT group_concat(operation_name, '|') FROM (SELECT s.operation_name "
	                             "FROM span_log AS s JOIN span_log AS r ON s.parent_span_id = r.span_id "
	                             "WHERE r.operation_name = 'request' AND s.operation_name NOT LIKE "
	                             "'prepare%' ORDER BY s.start_time_ns)"),
	                    "SELECT 1 AS first|SELECT 2 AS second");
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name LIKE '%outside%'"), 0);
	assert_int_equal(ask("SELECT statements = spans - 1 AND statements >= 2 FROM traces WHERE root = "
	                     "'request'"),
	                 1);
	set("log_queries_min_query_duration_ns", "DEFAULT");
}

static void have_the_times_of_query_log(void **state)
{
	(void)state;
	begin();
	{
		QP_SPAN("slow request");
		must_exec(db, LONG);
	}
	qp_trace_end();
	/* Statements of other tests also have rows if they lost their processor for 10 ms. */
	assert_int_equal(ask("SELECT count(*) FROM span_log AS s JOIN query_log AS q USING (query_id) WHERE "
	                     "s.operation_name = q.query AND s.duration_ns = q.query_duration_ns AND "
	                     "s.start_time_us BETWEEN strftime('%s', q.query_start_time_microseconds) * "
	                     "1000000 AND (strftime('%s', q.query_start_time_microseconds) + 1) * 1000000 "
	                     "AND s." OF("slow request")),
	                 1);
	/* Another clock gives a sample's time. A sample in a span's first or last microsecond may be
	 * outside the span. */
	assert_int_equal(ask("SELECT s.samples = (SELECT count(*) FROM trace_log WHERE query_id = s.query_id"
	                     " AND timestamp_ns BETWEEN s.start_time_ns AND s.finish_time_ns) AND s.samples "
	                     "> 5 AND s.self_time_ns = s.duration_ns FROM span_log AS s WHERE "
	                     "operation_name LIKE 'WITH RECURSIVE%'"),
	                 1);
	/* Both clocks show the same time. A span begins at the first step, after its statement's
	 * preparation. At most one sample of the preparation precedes the span, because the preparation
	 * takes less than a period. */
	assert_int_equal(ask("SELECT count(*) FROM (SELECT sum(t.timestamp_ns < s.start_time_ns - 1000) AS "
	                     "before, sum(t.timestamp_ns > s.finish_time_ns + 1000) AS after FROM trace_log "
	                     "AS t JOIN span_log AS s USING (span_id) GROUP BY span_id) WHERE before > 1 OR "
	                     "after > 0"),
	                 0);
	/* The request has the statement's CPU time plus the CPU time of such a sample. Both agree with
	 * query_log within the samples' error. */
	assert_int_equal(
		ask("SELECT r.samples = 0 AND r.cpu_time_ns = s.cpu_time_ns + (SELECT coalesce(sum(value), "
	            "0) FROM trace_log WHERE query_id = s.query_id AND trace_type = 'CPU' AND timestamp_ns "
	            "NOT BETWEEN s.start_time_ns AND s.finish_time_ns) AND "
	            "abs(s.cpu_time_ns - q.cpu_time_ns) < 5 * s.cpu_time_error_ns AND "
	            "s.cpu_time_error_ns > 0 AND r.self_time_ns < r.duration_ns "
	            "FROM span_log AS r, span_log AS s JOIN query_log AS q ON q.query_id = s.query_id WHERE "
	            "r.operation_name = 'slow request' AND s.operation_name LIKE 'WITH RECURSIVE%'"),
		1);
	assert_int_equal(
		ask("SELECT cpu_time_ns > 0 AND cpu_time_ns = (SELECT sum(value) FROM trace_log WHERE "
	            "trace_type = 'CPU' AND span_id <> '' AND timestamp_ns BETWEEN start_time_ns"
	            " AND start_time_ns + duration_ns) FROM traces WHERE root = 'slow request'"),
		1);
}

static void are_parents_of_what_runs_inside(void **state)
{
	(void)state;
	begin();
	{
		QP_SPAN("with a function");
		must_exec(db, "SELECT probe(x) FROM (SELECT 1 AS x UNION ALL SELECT 2)");
	}
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM span_log AS f JOIN span_log AS s ON f.parent_span_id = "
	                     "s.span_id WHERE f.operation_name = 'in the function' AND s.operation_name LIKE "
	                     "'SELECT probe(x)%'"),
	                 2);
	assert_int_equal(ask("SELECT s.self_time_ns = s.duration_ns - (SELECT sum(duration_ns) FROM span_log "
	                     "AS f WHERE f.parent_span_id = s.span_id) FROM span_log AS s WHERE "
	                     "s.operation_name LIKE 'SELECT probe(x)%'"),
	                 1);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		fail_msg("%s", sqlite3_errmsg(db));
	return stmt;
}

#define HOUR_NS "3600000000000"

/* A preparation that lasts at least this long has a row, and the statement's run continues it. A sampled
 * preparation has a row, too, so the period is an hour. (Without a period, the library would ignore the
 * connection.) */
static sqlite3 *open_with(const char *min_duration_ns)
{
	sqlite3 *opened;

	set("log_queries_min_query_duration_ns", min_duration_ns); /* applies to connections opened later */
	set("query_profiler_cpu_time_period_ns", HOUR_NS);
	if (sqlite3_open(":memory:", &opened) || qp_attach(opened))
		fail_msg("%s", qp_error());
	set("query_profiler_cpu_time_period_ns", "DEFAULT");
	set("log_queries_min_query_duration_ns", "DEFAULT");
	return opened;
}

/* Compares the spans of the statement `SELECT 1 AS name`, each with its parent. */
static void assert_within(const char *name, const char *expected)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
	         "SELECT group_concat(within || ': ' || name, ', ') FROM (SELECT p.operation_name AS within, "
	         "s.operation_name AS name FROM span_log AS s JOIN span_log AS p ON p.span_id = "
	         "s.parent_span_id WHERE s.operation_name LIKE '%%AS %s' ORDER BY s.start_time_ns)",
	         name);
	assert_string_equal(ask_text(sql), expected);
}

static void are_spans_while_they_are_prepared(void **state)
{
	sqlite3 *before = db;
	sqlite3_stmt *stmt;

	(void)state;
	db = open_with(HOUR_NS);
	begin();
	{
		QP_SPAN("prepares");
		stmt = prepare("SELECT 1 AS prepared");
	}
	{
		QP_SPAN("steps what was prepared");
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		sqlite3_finalize(stmt);
	}
	qp_trace_end();
	sqlite3_close(db);
	db = before;
	assert_within("prepared", "prepares: prepare SELECT 1 AS prepared, "
	                          "steps what was prepared: SELECT 1 AS prepared");
}

static void are_spans_of_a_trace_that_begins_later(void **state)
{
	sqlite3 *before = db;
	sqlite3_stmt *stmt;

	(void)state;
	db = open_with("0");
	stmt = prepare("SELECT 1 AS earlier");
	begin();
	{
		QP_SPAN("steps what was prepared earlier");
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		sqlite3_finalize(stmt);
	}
	qp_trace_end();
	sqlite3_close(db);
	db = before;
	assert_within("earlier", "steps what was prepared earlier: SELECT 1 AS earlier");
}

/* Each statement was prepared in a trace that has ended. */
static void are_spans_of_the_trace_that_steps_them(void **state)
{
	sqlite3 *before = db;
	sqlite3_stmt *stmt;

	(void)state;
	db = open_with("0");
	begin();
	{
		QP_SPAN("prepares for later");
		stmt = prepare("SELECT 1 AS later");
	}
	qp_trace_end();
	begin();
	{
		QP_SPAN("steps it now");
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		sqlite3_finalize(stmt);
	}
	qp_trace_end();
	sqlite3_close(db);
	db = before;
	assert_within("later", "steps it now: SELECT 1 AS later");
}

/* A statement's span ends with its trace. The statement's later spans belong to the next trace. */
static void are_left_with_their_trace(void **state)
{
	sqlite3_stmt *stmt = prepare("SELECT probe(1) UNION ALL SELECT probe(2)");

	(void)state;
	for (int row = 0; row < 2; row++) {
		begin();
		{
			QP_SPAN("steps on");
			assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		}
		qp_trace_end();
	}
	sqlite3_finalize(stmt);
	assert_string_equal(
		ask_text("SELECT group_concat(p.operation_name, '|') FROM (SELECT * FROM span_log AS f "
	                 "JOIN span_log AS r USING (trace_id) WHERE r.operation_name = 'steps on' AND "
	                 "f.operation_name = 'in the function' ORDER BY f.start_time_ns) AS f JOIN "
	                 "span_log AS p ON p.span_id = f.parent_span_id AND p.trace_id = f.trace_id"),
		"|steps on");
}

/* The same, but the next trace is inside the first one. */
static void are_left_with_the_trace_around(void **state)
{
	sqlite3 *before = db;
	sqlite3_stmt *stmt = prepare("SELECT probe(1) UNION ALL SELECT probe(2)"), *other;

	(void)state;
	db = open_with("0");
	begin();
	{
		QP_SPAN("around");
		other = prepare("SELECT 1 AS deeper");
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		begin();
		{
			QP_SPAN("nested");
			assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
			assert_int_equal(sqlite3_step(other), SQLITE_ROW);
			sqlite3_finalize(other);
		}
		qp_trace_end();
	}
	qp_trace_end();
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	db = before;
	assert_string_equal(
		ask_text("SELECT group_concat(f.operation_name, '|') FROM (SELECT s.* FROM span_log AS s "
	                 "JOIN span_log AS r ON r.span_id = s.parent_span_id AND r.trace_id = "
	                 "s.trace_id WHERE r.operation_name = 'nested' ORDER BY s.start_time_ns) AS f"),
		"in the function|SELECT 1 AS deeper");
}

/* The statement was prepared in a trace that has ended. */
static void make_traces_of_their_own_behind_one(void **state)
{
	sqlite3 *before = db;
	sqlite3_stmt *stmt;

	(void)state;
	db = open_with("0");
	begin();
	stmt = prepare("SELECT 1 AS behind_it");
	qp_trace_end();
	set("trace_statements", "all");
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	sqlite3_finalize(stmt);
	set("trace_statements", "inside");
	sqlite3_close(db);
	db = before;
	assert_int_equal(ask("SELECT count(*) FROM traces WHERE root = 'SELECT 1 AS behind_it'"), 1);
}

/* A program steps statements in any order. One begins before another ends, and outlives the span around
 * it. */
static void need_not_nest(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("short span");
	sqlite3_stmt *first = prepare("SELECT 1 AS one UNION ALL SELECT 2"),
		     *second = prepare("SELECT 1 AS two UNION ALL SELECT 2");
	qp_span span;

	(void)state;
	begin();
	{
		QP_SPAN("steps");
		span = qp_span_begin(&site);
		assert_int_equal(sqlite3_step(first), SQLITE_ROW);
		assert_int_equal(sqlite3_step(second), SQLITE_ROW);
		qp_span_end(span);
		{
			QP_SPAN("between");
		}
		assert_int_equal(sqlite3_step(first), SQLITE_ROW);
		assert_int_equal(sqlite3_step(first), SQLITE_DONE);
		sqlite3_reset(second);
	}
	qp_trace_end();
	sqlite3_finalize(first);
	sqlite3_finalize(second);
	assert_string_equal(
		ask_text("SELECT group_concat(p.operation_name || '>' || substr(s.operation_name, "
	                 "13, 3), ' ') FROM span_log AS s JOIN span_log AS p ON p.span_id = "
	                 "s.parent_span_id WHERE s.operation_name LIKE 'SELECT 1 AS one%' OR "
	                 "s.operation_name LIKE 'SELECT 1 AS two%' AND NOT s.unended"),
		"short span>one short span>two");
	assert_int_equal(ask("SELECT b.parent_span_id = s.span_id AND NOT b.unended AND NOT s.unended FROM "
	                     "span_log AS b, span_log AS s WHERE b.operation_name = 'between' AND "
	                     "s.operation_name = 'steps'"),
	                 1);
}

/* Like a virtual table's span, from the call that opens its cursor to the call that closes it. */
static void begin_or_end(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	static qp_span_site site = QP_SPAN_SITE("cursor");
	static qp_span cursor;

	(void)argc;
	if (sqlite3_value_int(argv[0]))
		cursor = qp_span_begin(&site);
	else
		qp_span_end(cursor);
	sqlite3_result_int(context, 42);
}

static void may_have_spans_over_several_calls(void **state)
{
	sqlite3 *before = db;
	sqlite3_stmt *stmt;

	(void)state;
	db = open_with("0");
	assert_int_equal(
		sqlite3_create_function(db, "cursor", 1, SQLITE_UTF8, NULL, begin_or_end, NULL, NULL),
		SQLITE_OK);
	begin();
	{
		QP_SPAN("has a cursor");
		stmt = prepare("SELECT cursor(1) UNION ALL SELECT cursor(0)");
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		{
			QP_SPAN("behind the cursor");
		}
		sqlite3_finalize(stmt);
	}
	qp_trace_end();
	sqlite3_close(db);
	db = before;
	assert_string_equal(
		ask_text("SELECT group_concat(line, ', ') FROM (SELECT substr(p.operation_name, 1, 12) || "
	                 "'>' || substr(s.operation_name, 1, 17) AS line FROM span_log AS s JOIN span_log "
	                 "AS p ON p.span_id = s.parent_span_id WHERE NOT s.unended AND s.operation_name NOT "
	                 "LIKE "
	                 "'wait:%' AND s." OF("has a cursor") " ORDER BY s.start_time_ns)"),
		"has a cursor>SELECT cursor(1) , SELECT curso>cursor, has a cursor>behind the cursor");
	assert_int_equal(ask("SELECT s.duration_ns = q.query_duration_ns FROM span_log AS s JOIN query_log "
	                     "AS q USING (query_id) WHERE s.operation_name LIKE 'SELECT cursor(1)%'"),
	                 1);
}

/* The statement that ends first has left a span open, which contains the other statement. */
static void have_their_ends_though_they_do_not_nest(void **state)
{
	sqlite3 *before = db;
	sqlite3_stmt *first, *second;

	(void)state;
	db = open_with("0");
	assert_int_equal(
		sqlite3_create_function(db, "cursor", 1, SQLITE_UTF8, NULL, begin_or_end, NULL, NULL),
		SQLITE_OK);
	first = prepare("SELECT cursor(1), 'first'");
	second = prepare("SELECT cursor(1), 'second' UNION ALL SELECT 1, 2");
	begin();
	{
		QP_SPAN("has two");
		assert_int_equal(sqlite3_step(first), SQLITE_ROW);
		assert_int_equal(sqlite3_step(second), SQLITE_ROW);
		sqlite3_finalize(first);
		assert_int_equal(sqlite3_step(second), SQLITE_ROW);
		sqlite3_finalize(second);
	}
	qp_trace_end();
	sqlite3_close(db);
	db = before;
	assert_int_equal(
		ask("SELECT count(*) FROM span_log JOIN query_log USING (query_id) WHERE operation_name "
	            "LIKE 'SELECT cursor(1), ''%' AND NOT unended"),
		2);
}

static void that_fail_have_their_status(void **state)
{
	(void)state;
	must_exec(db, "CREATE TABLE once (id INTEGER PRIMARY KEY); INSERT INTO once VALUES (1)");
	begin();
	{
		QP_SPAN("failing");
		assert_int_equal(sqlite3_exec(db, "INSERT INTO once VALUES (1)", NULL, NULL, NULL),
		                 SQLITE_CONSTRAINT);
	}
	qp_trace_end();
	assert_string_equal(ask_text("SELECT status || ' ' || exception_code FROM span_log JOIN query_log "
	                             "USING (query_id) WHERE query_id <> '' AND operation_name LIKE 'INSERT "
	                             "INTO once%' AND status <> 'UNSET'"),
	                    "ERROR 1555");
}

/* A span inside such a statement is a child of the span around the statement. */
static void that_are_not_logged_are_none(void **state)
{
	sqlite3 *before = db;

	(void)state;
	set("log_queries", "0"); /* applies to later connections, and to an engine's queries */
	if (sqlite3_open(":memory:", &db) || qp_attach(db) ||
	    sqlite3_create_function(db, "probe", -1, SQLITE_UTF8, NULL, probe, NULL, NULL))
		fail_msg("%s", qp_error());
	begin();
	{
		QP_SPAN("logs nothing");
		must_exec(db, "SELECT probe(1)");
		assert_int_equal(qp_query_begin(NULL), QP_OK);
		{
			QP_SPAN("in the query");
		}
		qp_query_end(0, NULL);
	}
	qp_trace_end();
	set("log_queries", "DEFAULT");
	sqlite3_close(db);
	db = before;
	assert_int_equal(ask("SELECT count(*) FROM span_log AS s JOIN span_log AS p ON p.span_id = "
	                     "s.parent_span_id WHERE p.operation_name = 'logs nothing' AND s.operation_name "
	                     "IN ('in the function', 'in the query')"),
	                 2);
	assert_int_equal(ask("SELECT statements FROM traces WHERE root = 'logs nothing'"), 0);
}

/* The same for statements that prove to be queryprof's own when they run. */
static void that_call_queryprof_are_none(void **state)
{
	(void)state;
	begin();
	{
		QP_SPAN("calls queryprof");
		must_exec(db, "SELECT probe(1), get_setting('log_queries')");
	}
	must_exec(db, "SELECT probe(2), get_setting('log_queries')");
	qp_trace_end();
	assert_string_equal(
		ask_text(
			"SELECT group_concat(within, ', ') FROM (SELECT coalesce(p.operation_name, "
			"s.parent_span_id) AS within FROM span_log AS s LEFT JOIN span_log AS p ON p.span_id "
			"= s.parent_span_id WHERE s.operation_name = 'in the function' AND "
			"s." OF("calls queryprof") " ORDER BY s.start_time_ns)"),
		"calls queryprof, ");
}

/* The jump leaves SQLite in the middle of a call, so the old connection is not used again. */
static void take_another_connection(void)
{
	if (sqlite3_open(":memory:", &db) || qp_attach(db))
		fail_msg("%s", qp_error());
	sqlite3_create_function(db, "probe", -1, SQLITE_UTF8, NULL, probe, NULL, NULL);
}

static void that_are_left_end_where_nothing_is_recorded(void **state)
{
	qp_context around;

	(void)state;
	begin();
	{
		QP_SPAN("left there");
		if (!setjmp(out))
			sqlite3_exec(db, "SELECT probe(4711)", NULL, NULL, NULL);
		around = qp_context_set((qp_context){ 0 });
		take_another_connection();
		must_exec(db, "SELECT 1 AS not_in_the_trace");
		qp_context_set(around);
	}
	qp_trace_end();
	assert_string_equal(ask_text("SELECT group_concat(operation_name) FROM span_log WHERE "
	                             "unended AND trace_id = (SELECT trace_id FROM span_log WHERE "
	                             "operation_name = 'left there')"),
	                    ",in the function"); /* the statement's span gets its name when it ends */
}

static void that_are_left_are_marked(void **state)
{
	(void)state;
	begin();
	{
		QP_SPAN("left");
		if (!setjmp(out))
			sqlite3_exec(db, "SELECT probe(4711)", NULL, NULL, NULL);
	}
	take_another_connection();
	must_exec(db, "SELECT 1 AS after_it");
	qp_trace_end();
	assert_int_equal(ask("SELECT unended = 0 FROM span_log WHERE operation_name = 'left'"), 1);
	assert_int_equal(ask("SELECT count(*) FROM span_log AS f JOIN span_log AS s ON f.parent_span_id = "
	                     "s.span_id WHERE f.operation_name = 'in the function' AND f.unended AND "
	                     "s.unended AND s." OF("left")),
	                 1);
	assert_string_equal(
		ask_text("SELECT parent_span_id FROM span_log WHERE operation_name = 'SELECT 1 AS after_it'"),
		"");
}

static void make_traces_of_their_own(void **state)
{
	(void)state;
	set("trace_statements", "all");
	must_exec(db, "SELECT probe(1) AS alone");
	set("trace_statements", "off");
	begin();
	{
		QP_SPAN("without statements");
		must_exec(db, "SELECT 1 AS not_seen");
	}
	qp_trace_end();
	set("trace_statements", "inside");
	must_exec(db, "SELECT 1 AS not_seen");
	assert_int_equal(ask("SELECT spans = 1 AND statements = 1 FROM traces WHERE root = 'SELECT probe(1) "
	                     "AS alone'"),
	                 1);
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name LIKE '%not_seen%'"), 0);
	assert_int_equal(qp_set(NULL, "trace_statements", "some"), QP_INVALID);
	assert_non_null(strstr(qp_error(), "off, inside or all"));
}

static void copy_database(sqlite3 *from)
{
	sqlite3 *to;
	sqlite3_backup *backup;

	if (sqlite3_open(":memory:", &to))
		fail_msg("no database");
	backup = sqlite3_backup_init(to, "main", from, "main");
	assert_int_equal(sqlite3_backup_step(backup, 1), SQLITE_OK);
	{
		QP_SPAN("between steps");
	}
	assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
	assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
	sqlite3_close(to);
}

static void read_blob(sqlite3 *from)
{
	sqlite3_blob *blob;
	char bytes[1000];

	assert_int_equal(sqlite3_blob_open(from, "main", "files", "content", 1, 0, &blob), SQLITE_OK);
	assert_int_equal(sqlite3_blob_read(blob, bytes, sizeof(bytes), 0), SQLITE_OK);
	assert_int_equal(sqlite3_blob_close(blob), SQLITE_OK);
}

/* SQLite operations with calls of their own. Each is a span from its first call to its last. */
static void of_backups_checkpoints_and_blobs(void **state)
{
	sqlite3 *memory = db;
	char path[] = "/tmp/queryprof-span-operations-XXXXXX", other[64];

	(void)state;
	close(mkstemp(path));
	set("log_queries_min_query_duration_ns", "0"); /* applies to connections opened later */
	if (sqlite3_open(path, &db) || qp_attach(db))
		fail_msg("%s", qp_error());
	must_exec(db,
	          "PRAGMA journal_mode = WAL; CREATE TABLE files (content BLOB); INSERT INTO files VALUES "
	          "(zeroblob(100000))");
	begin();
	{
		QP_SPAN("maintenance");
		copy_database(db);
		assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
		                 SQLITE_OK);
		read_blob(db);
	}
	qp_trace_end();
	set("log_queries_min_query_duration_ns", "DEFAULT");
	sqlite3_close(db);
	db = memory;
	unlink(path);
	for (int i = 0; i < 2; i++) {
		snprintf(other, sizeof(other), "%s%s", path, i ? "-shm" : "-wal");
		unlink(other);
	}
	/* The sqlite3_close() of the copy is also a span if it had to wait for a lock. */
	assert_string_equal(
		ask_text("SELECT group_concat(s.operation_name || iif(s.unended, ' unended', '') || "
	                 "iif(s.query_id = '' AND s.operation_name <> 'between steps', ' without a row', "
	                 "''), ' ') FROM (SELECT s.* FROM "
	                 "span_log AS s JOIN span_log AS r ON s.parent_span_id = r.span_id WHERE "
	                 "r.operation_name = 'maintenance' AND s.operation_name NOT LIKE "
	                 "'wait:%' AND s.operation_name <> 'sqlite3_close()' "
	                 "ORDER BY s.start_time_ns) AS s"),
		"sqlite3_backup_step(main) between steps sqlite3_wal_checkpoint_v2(main) "
		"sqlite3_blob_open(main.files.content)");
	/* The span and query_log use the same record and the same clock. */
	assert_int_equal(
		ask("SELECT count(*) FROM span_log AS s JOIN query_log AS q USING (query_id) WHERE "
	            "s.operation_name LIKE 'sqlite3_%' AND s.operation_name <> 'sqlite3_close()' AND "
	            "s.operation_name = q.query AND s.duration_ns = q.query_duration_ns AND "
	            "s.status = 'UNSET' AND NOT s.unended"),
		3);
}

static void of_an_engine_are_spans_too(void **state)
{
	const qp_query query = { .size = sizeof(query), .text = "an engine's" };

	(void)state;
	begin();
	{
		QP_SPAN("engine");
		assert_int_equal(qp_query_begin(&query), QP_OK);
		{
			QP_SPAN("inside of it");
		}
		qp_query_end(0, NULL);
	}
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM span_log AS i JOIN span_log AS q ON q.span_id = "
	                     "i.parent_span_id JOIN span_log AS r ON r.span_id = q.parent_span_id WHERE "
	                     "i.operation_name = 'inside of it' AND q.operation_name = 'an engine''s' AND "
	                     "r.operation_name = 'engine'"),
	                 1);
}

/* A longjmp() or an early return has left the span open. It ends with its query, and later spans are not
 * its children. */
static void end_what_was_left_in_them(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("left in the query");
	const qp_query query = { .size = sizeof(query), .text = "leaves a span" };

	(void)state;
	set("log_queries_min_query_duration_ns", "0");
	begin();
	{
		QP_SPAN("around the query");
		assert_int_equal(qp_query_begin(&query), QP_OK);
		qp_span_begin(&site);
		qp_query_end(0, NULL);
		{
			QP_SPAN("behind the query");
		}
	}
	qp_trace_end();
	set("log_queries_min_query_duration_ns", "DEFAULT");
	assert_string_equal(
		ask_text("SELECT group_concat(line, ', ') FROM (SELECT p.operation_name || '>' || "
	                 "s.operation_name || s.unended AS line FROM span_log AS s JOIN span_log AS p ON "
	                 "p.span_id = s.parent_span_id WHERE s." OF(
				 "around the query") " ORDER BY s.start_time_ns)"),
		"around the query>leaves a span0, leaves a span>left in the query1, around the query>behind "
		"the query0");
	assert_int_equal(
		ask("SELECT l.finish_time_ns <= q.finish_time_ns FROM span_log AS l, span_log AS q WHERE "
	            "l.operation_name = 'left in the query' AND q.operation_name = 'leaves a span'"),
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_spans_of_the_trace),
		cmocka_unit_test(have_the_times_of_query_log),
		cmocka_unit_test(are_parents_of_what_runs_inside),
		cmocka_unit_test(are_spans_while_they_are_prepared),
		cmocka_unit_test(are_spans_of_a_trace_that_begins_later),
		cmocka_unit_test(are_spans_of_the_trace_that_steps_them),
		cmocka_unit_test(are_left_with_their_trace),
		cmocka_unit_test(are_left_with_the_trace_around),
		cmocka_unit_test(need_not_nest),
		cmocka_unit_test(may_have_spans_over_several_calls),
		cmocka_unit_test(have_their_ends_though_they_do_not_nest),
		cmocka_unit_test(that_fail_have_their_status),
		cmocka_unit_test(make_traces_of_their_own),
		cmocka_unit_test(make_traces_of_their_own_behind_one),
		cmocka_unit_test(of_backups_checkpoints_and_blobs),
		cmocka_unit_test(of_an_engine_are_spans_too),
		cmocka_unit_test(end_what_was_left_in_them),
		cmocka_unit_test(that_are_not_logged_are_none),
		cmocka_unit_test(that_call_queryprof_are_none),
		/* Last, because they abandon a connection. */
		cmocka_unit_test(that_are_left_end_where_nothing_is_recorded),
		cmocka_unit_test(that_are_left_are_marked),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
