/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans that do not end properly. They break nothing, and the file marks them.
 */
#include <pthread.h>
#include <queryprof.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "support.h"

static void begin(void)
{
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
}

static jmp_buf out;

static void deep(int levels)
{
	static qp_span_site site = QP_SPAN_SITE("left");

	qp_span_begin(&site);
	if (levels > 1)
		deep(levels - 1);
	if (site.number)
		longjmp(out, 1);
}

static void longjmp_over_spans(void **state)
{
	static qp_span_site outer = QP_SPAN_SITE("outer of left");
	qp_span span;

	(void)state;
	begin();
	span = qp_span_begin(&outer);
	if (!setjmp(out))
		deep(3);
	qp_span_end(span);
	{
		QP_SPAN("after it");
	}
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name = 'left' AND unended"), 3);
	assert_int_equal(
		ask("SELECT o.unended = 0 AND count(*) = 3 FROM span_log AS o JOIN span_log AS l ON "
	            "l.finish_time_ns = o.finish_time_ns WHERE o.operation_name = 'outer of left' AND "
	            "l.operation_name = 'left'"),
		1);
	assert_string_equal(ask_text("SELECT parent_span_id FROM span_log WHERE operation_name = 'after it'"),
	                    "");
}

/* Unlike scopes: the outer span ends first, then the inner one, each twice. */
static void in_the_wrong_order(void **state)
{
	static qp_span_site a = QP_SPAN_SITE("a"), b = QP_SPAN_SITE("b");
	qp_span first, second;

	(void)state;
	begin();
	first = qp_span_begin(&a);
	second = qp_span_begin(&b);
	qp_span_end(first);
	qp_span_end(first);
	usleep(1000);
	qp_span_end(second);
	qp_span_end(second);
	qp_trace_end();
	assert_int_equal(
		ask("SELECT NOT a.unended AND NOT b.unended AND b.finish_time_ns >= a.finish_time_ns "
	            "+ 1000000 AND b.parent_span_id = a.span_id FROM span_log AS a, span_log AS b "
	            "WHERE a.operation_name = 'a' AND b.operation_name = 'b'"),
		1);
}

static void *end_inside(void *unused)
{
	static qp_span_site site = QP_SPAN_SITE("thread ends inside");

	begin();
	qp_span_begin(&site);
	return unused;
}

static void a_thread_ends(void **state)
{
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 50; i++) {
		assert_int_equal(pthread_create(&thread, NULL, end_inside, NULL), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(
		ask("SELECT count(*) FROM span_log WHERE operation_name = 'thread ends inside' AND unended"),
		50);
	assert_int_equal(ask("SELECT count(*) FROM traces WHERE root = 'thread ends inside'"), 50);
}

static void nested_deep(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("nested");
	qp_span spans[200];

	(void)state;
	begin();
	for (int i = 0; i < 200; i++)
		spans[i] = qp_span_begin(&site);
	for (int i = 200; i-- > 0;)
		qp_span_end(spans[i]);
	qp_trace_end();
	assert_int_equal(
		ask("WITH RECURSIVE s AS MATERIALIZED (SELECT span_id, parent_span_id, unended FROM "
	            "span_log WHERE operation_name = 'nested'), d(id, n) AS (SELECT span_id, 1 FROM s "
	            "WHERE parent_span_id = '' UNION ALL SELECT span_id, n + 1 FROM d JOIN s ON "
	            "parent_span_id = id WHERE NOT unended) SELECT max(n) FROM d"),
		200);
}

/* All spans are open at the same time, each inside the previous one. */
static void a_million_open_spans(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("open");
#ifdef __SANITIZE_ADDRESS__ /* ten times as slow, and the second 100,000 test nothing new */
	const int count = 100000;
#else
	const int count = 1000000;
#endif
	qp_span *spans = malloc((size_t)count * sizeof(*spans));
	char expected[24];

	(void)state;
	set("trace_wait_ms", "60000");
	begin();
	for (int i = 0; i < count; i++)
		spans[i] = qp_span_begin(&site);
	for (int i = count; i-- > count / 2;)
		qp_span_end(spans[i]);
	qp_trace_end(); /* the other spans are still open */
	free(spans);
	set("trace_wait_ms", "DEFAULT");
	assert_int_equal(ask("SELECT spans FROM traces WHERE root = 'open'"), count);
	/* The self time of each span is its duration minus the next span's duration. */
	snprintf(expected, sizeof(expected), "%d 0", count / 2);
	assert_string_equal(
		ask_text("SELECT sum(flags & 1) || ' ' || sum(coalesce(max(rest, 0) <> self_ns, "
	                 "0)) FROM (SELECT flags, self_ns, duration_ns - lead(duration_ns) OVER "
	                 "(ORDER BY span) AS rest FROM span_rows WHERE trace_lo = (SELECT trace_lo "
	                 "FROM span_batches ORDER BY id DESC LIMIT 1))"),
		expected);
}

static void fork_inside(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("forks");
	qp_span_handle handle;
	int status;
	pid_t child;
	qp_span span;

	(void)state;
	begin();
	span = qp_span_begin(&site);
	handle = qp_span_fork();
	child = fork();
	if (!child) {
		/* The child has no trace unless it joins the parent's. */
		int code = qp_span_here == NULL ? 0 : 1;

		qp_span_end(span);
		qp_trace_end();
		if (!code && qp_span_join(handle))
			code = 2;
		{
			QP_SPAN("child");
			QP_SPAN("grandchild");
		}
		qp_trace_end();
		if (!code && qp_flush(60000))
			code = 3;
		_exit(code);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	qp_span_end(span);
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name = 'forks'"), 1);
	assert_int_equal(
		ask("SELECT c.parent_span_id = f.span_id AND c.trace_id = f.trace_id AND c.process_id "
	            "<> f.process_id AND g.parent_span_id = c.span_id FROM span_log AS f, span_log AS "
	            "c, span_log AS g WHERE f.operation_name = 'forks' AND c.operation_name = 'child' "
	            "AND g.operation_name = 'grandchild'"),
		1);
	assert_int_equal(ask("SELECT spans FROM traces WHERE root = 'forks'"), 3);
}

static void exec_inside(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("execs");
	int status;
	pid_t child = fork();

	(void)state;
	if (!child) {
		begin();
		qp_span_begin(&site);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* The child shares its parent's memory, so it must not change the trace. */
static void vfork_inside(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("vforks");
	char name[] = "true", *const arguments[] = { name, NULL };
	qp_span span;
	sqlite3 *db;
	int status;
	pid_t child;

	(void)state;
	/* The library hooks exec when the first connection opens. */
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(qp_attach(db), QP_OK);
	begin();
	span = qp_span_begin(&site);
	child = vfork();
	if (!child) {
		execve("/bin/true", arguments, environ);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_non_null(qp_span_here);
	{
		QP_SPAN("behind vfork");
	}
	qp_span_end(span);
	qp_trace_end();
	sqlite3_close(db);
	assert_int_equal(ask("SELECT count(*) = 1 AND max(spans) = 2 FROM traces WHERE root = 'vforks'"), 1);
	assert_int_equal(ask("SELECT count(*) = 2 AND sum(s.unended) = 0 FROM span_log AS s JOIN traces AS t "
	                     "USING (trace_id) WHERE t.root = 'vforks'"),
	                 1);
}

/* The time that it took. */
static uint64_t exit_quickly(void)
{
	static qp_span_site site = QP_SPAN_SITE("exits quickly");
	uint64_t start = now_ns();
	int status;
	pid_t child = fork();

	if (!child) {
		begin();
		qp_span_begin(&site);
		quick_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return now_ns() - start;
}

/* quick_exit() acts as _exit() does: the library stores the unfinished trace, if that takes at most a
 * second. On a busy machine it may take longer, and then it may be lost. */
static void quick_exit_inside(void **state)
{
	enum { MOST = 20, LIMIT_NS = 900000000 };
	sqlite3 *db;
	int exits = 0, stored = 0;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(qp_attach(db), QP_OK);
	for (; !stored && exits < MOST; exits++) {
		uint64_t took_ns = exit_quickly();

		stored = ask("SELECT count(*) FROM span_log WHERE operation_name = 'exits quickly'");
		assert_true(stored || took_ns > LIMIT_NS);
	}
	sqlite3_close(db);
	if (!stored) {
		printf("  each of %d exits took longer than a second\n", MOST);
		skip();
	}
	assert_int_equal(stored, 1);
	assert_int_equal(ask("SELECT sum(unended) FROM span_log WHERE operation_name = 'exits quickly'"), 1);
}

/* exec() has handed over the trace. The program continues, ends the trace, and begins another one. */
static void exec_fails_inside(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("exec fails");
	sqlite3 *db;
	qp_span span;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(qp_attach(db), QP_OK);
	for (int i = 0; i < 40; i++) { /* more than can nest */
		begin();
		span = qp_span_begin(&site);
		assert_int_equal(execl("/nonexistent", "x", NULL), -1);
		assert_null(qp_span_here);
		assert_int_equal(execl("/nonexistent", "x", NULL), -1);
		qp_span_end(span);
		qp_trace_end();
		begin();
		assert_non_null(qp_span_here);
		qp_trace_end();
	}
	sqlite3_close(db);
	assert_int_equal(
		ask("SELECT count(*) = 40 AND sum(unended) = 40 FROM span_log WHERE operation_name = "
	            "'exec fails'"),
		1);
}

/* qp_shutdown() ends the thread's trace. Spans after it are discarded. */
static void shutdown_inside(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("shut down");
	const qp_config config = { .size = sizeof(config), .trace_log_path = trace_path };
	qp_span span;

	(void)state;
	begin();
	span = qp_span_begin(&site);
	assert_int_equal(qp_shutdown(), QP_OK);
	qp_span_end(span);
	span = qp_span_begin(&site);
	qp_span_end(span);
	qp_trace_end();
	assert_int_equal(qp_trace_begin(NULL), QP_NOT_RUNNING);
	assert_int_equal(qp_init(&config), QP_OK);
	assert_null(qp_span_here);
	begin();
	span = qp_span_begin(&site);
	qp_span_end(span);
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM traces WHERE root = 'shut down'"), 2);
	assert_int_equal(
		ask("SELECT sum(unended) = 1 AND count(*) = 2 FROM span_log WHERE operation_name = 'shut "
	            "down'"),
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longjmp_over_spans),   cmocka_unit_test(in_the_wrong_order),
		cmocka_unit_test(a_thread_ends),        cmocka_unit_test(nested_deep),
		cmocka_unit_test(fork_inside),          cmocka_unit_test(exec_inside),
		cmocka_unit_test(vfork_inside),         cmocka_unit_test(quick_exit_inside),
		cmocka_unit_test(exec_fails_inside),    cmocka_unit_test(shutdown_inside),
		cmocka_unit_test(a_million_open_spans), /* last: the other tests read all spans of the file */
	};

	return cmocka_run_group_tests(tests, set_up_file, tear_down_file);
}
