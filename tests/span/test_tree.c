/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a request: nesting, order and times of its spans, on one thread, over several threads, and in
 * several requests.
 */
#include <pthread.h>
#include <queryprof.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

/* Loops until at least `ns` of wall time have passed. */
static void pass(int64_t ns)
{
	struct timespec now, start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < ns);
}

static void begin(const char *traceparent)
{
	if (qp_trace_begin(traceparent))
		fail_msg("%s", qp_error());
}

static void bar(void)
{
	QP_SPAN("bar");
	pass(200000);
}

static void baz(void)
{
	QP_SPAN("baz");
	pass(100000);
}

static void foo(void)
{
	QP_SPAN("foo");
	bar();
	baz();
}

/* The names from the root down, children in order of time. */
#define TREE_OF(root)                                                                                        \
	"WITH RECURSIVE spans AS MATERIALIZED (SELECT * FROM span_log WHERE trace_id = (SELECT trace_id "    \
	"FROM traces WHERE root = '" root "')), tree(id, name, depth, start) AS (SELECT span_id, "           \
	"operation_name, 0, start_time_ns FROM spans WHERE parent_span_id NOT IN (SELECT span_id FROM "      \
	"spans) UNION ALL SELECT s.span_id, s.operation_name, depth + 1, s.start_time_ns FROM tree JOIN "    \
	"spans AS s ON s.parent_span_id = tree.id ORDER BY 3 DESC, 4) SELECT group_concat(substr('....', "   \
	"1, depth) || name, ' ') FROM tree"

static void a_function_and_what_it_calls(void **state)
{
	(void)state;
	begin(NULL);
	foo();
	qp_trace_end();
	assert_string_equal(ask_text(TREE_OF("foo")), "foo .bar .baz");
	assert_int_equal(ask("SELECT duration_ns >= 200000 FROM span_log WHERE operation_name = 'bar'"), 1);
	assert_int_equal(ask("SELECT duration_ns >= 100000 FROM span_log WHERE operation_name = 'baz'"), 1);
	/* The spans follow each other inside the root. */
	assert_int_equal(ask("SELECT f.start_time_ns <= r.start_time_ns AND r.finish_time_ns <= "
	                     "z.start_time_ns AND z.finish_time_ns <= f.finish_time_ns AND "
	                     "f.self_time_ns = f.duration_ns - r.duration_ns - z.duration_ns "
	                     "FROM span_log AS f, span_log AS r, span_log AS z WHERE f.operation_name = "
	                     "'foo' AND r.operation_name = 'bar' AND z.operation_name = 'baz'"),
	                 1);
	assert_string_equal(ask_text("SELECT root || ' ' || spans || ' ' || statements || ' ' || threads || "
	                             "' ' || dropped FROM traces WHERE root = 'foo'"),
	                    "foo 3 0 1 0");
	assert_int_equal(ask("SELECT duration_ns >= 300000 FROM traces WHERE root = 'foo'"), 1);
	assert_string_equal(ask_text("SELECT function FROM span_log WHERE operation_name = 'bar'"), "bar");
	assert_int_equal(ask("SELECT file LIKE '%test_tree.c' AND line > 0 AND kind = 'INTERNAL' AND status "
	                     "= 'UNSET' AND unended = 0 AND attribute = '{}' AND events = '[]' FROM "
	                     "span_log WHERE operation_name = 'bar'"),
	                 1);
}

/* Spans outside a trace are ignored, and harmless. */
static void without_a_trace(void **state)
{
	int64_t before = metric("spans");

	(void)state;
	assert_null(qp_span_here);
	foo();
	qp_trace_end();
	qp_span_end((qp_span){ 4711 });
	assert_int_equal(qp_span_fork().trace_lo, 0);
	assert_int_equal(metric("spans"), before);
}

static void takes_over_a_traceparent(void **state)
{
	char text[QP_TRACEPARENT_BYTES], none[QP_TRACEPARENT_BYTES];
	static qp_span_site site = QP_SPAN_SITE("handler");
	qp_span span;

	(void)state;
	begin("00-4bf92f3577b34da6a3ce929d0e0e4736-f0f067aa0ba902b7-01");
	qp_traceparent(text);
	assert_string_equal(text, "00-4bf92f3577b34da6a3ce929d0e0e4736-f0f067aa0ba902b7-01");
	span = qp_span_begin(&site);
	qp_traceparent(text);
	assert_memory_equal(text, "00-4bf92f3577b34da6a3ce929d0e0e4736-", 36);
	qp_span_end(span);
	qp_trace_end();
	qp_traceparent(none);
	assert_string_equal(none, "");
	assert_string_equal(ask_text("SELECT trace_id || parent_span_id || kind FROM span_log WHERE "
	                             "operation_name = 'handler'"),
	                    "4bf92f3577b34da6a3ce929d0e0e4736f0f067aa0ba902b7SERVER");
	assert_int_equal(strtoull(text + 36, NULL, 16), span.id);
}

static void refuses_what_is_no_traceparent(void **state)
{
	static const char *const bad[] = {
		"",
		"00",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(qp_trace_begin(bad[i]), QP_INVALID);
		assert_non_null(strstr(qp_error(), bad[i]));
		assert_null(qp_span_here);
	}
	begin("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-brings");
	qp_trace_end();
}

/* --- other threads ------------------------------------------------------------------------------ */

static void *task(void *handle)
{
	if (qp_span_join(*(const qp_span_handle *)handle))
		return (void *)qp_error();
	{
		QP_SPAN("task");
		baz();
	}
	qp_trace_end();
	return qp_span_here;
}

static void run_tasks(const qp_span_handle *handle, int count)
{
	pthread_t threads[8];
	void *result;

	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, task, (void *)handle), 0);
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], &result);
		assert_null(result);
	}
}

static void tasks_on_other_threads(void **state)
{
	qp_span_handle handle;

	(void)state;
	begin(NULL);
	{
		QP_SPAN("request");
		QP_SPAN("spawn");
		handle = qp_span_fork();
		run_tasks(&handle, 4);
	}
	qp_trace_end();
	/* A thread joins after the trace has ended. */
	run_tasks(&handle, 1);
	assert_string_equal(ask_text(TREE_OF("request")),
	                    "request .spawn ..task ...baz ..task ...baz ..task ...baz ..task ...baz ..task "
	                    "...baz");
	assert_int_equal(ask("SELECT count(DISTINCT thread_id) >= 2 FROM span_log WHERE trace_id = (SELECT "
	                     "trace_id FROM traces WHERE root = 'request')"),
	                 1);
	assert_int_equal(ask("SELECT spans FROM traces WHERE root = 'request'"), 12);
}

static qp_span_object object;

static void *finish(void *unused)
{
	(void)unused;
	qp_span_object_end(&object);
	return NULL;
}

static void a_span_of_two_threads(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("in the queue");
	qp_span_handle handle;
	pthread_t thread;

	(void)state;
	begin(NULL);
	{
		QP_SPAN("producer");
		qp_span_object_begin(&object, &site);
		handle = qp_span_object_handle(&object);
		pass(100000);
	}
	run_tasks(&handle, 1);
	assert_int_equal(pthread_create(&thread, NULL, finish, NULL), 0);
	pthread_join(thread, NULL);
	qp_trace_end();
	assert_string_equal(ask_text(TREE_OF("producer")), "producer .in the queue ..task ...baz");
	assert_int_equal(ask("SELECT q.finish_time_ns > p.finish_time_ns AND q.start_time_ns >= "
	                     "p.start_time_ns AND q.duration_ns >= 100000 FROM span_log AS p, span_log AS q "
	                     "WHERE p.operation_name = 'producer' AND q.operation_name = 'in the queue'"),
	                 1);
}

/* One piece of work for three requests, like one write for several waiting requests. */
static void a_batch_for_several_requests(void **state)
{
	qp_span_handle handles[4] = { { .trace_lo = 0 } };
	static const char *const ids[] = { "00-0000000000000000000000000000000a-00000000000000aa-01",
		                           "00-0000000000000000000000000000000b-00000000000000bb-01",
		                           "00-0000000000000000000000000000000c-00000000000000cc-01" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		begin(ids[i]);
		QP_SPAN("one of three");
		handles[i + 1] = qp_span_fork();
		qp_trace_end();
	}
	assert_int_equal(qp_span_follow(handles, 4), QP_OK);
	{
		QP_SPAN("write");
		baz();
	}
	qp_trace_end();
	assert_string_equal(
		ask_text(
			"SELECT group_concat(c, ' ') FROM (SELECT count(*) || substr(min(trace_id), 32) AS c "
			"FROM span_log WHERE operation_name IN ('write', 'baz') AND trace_id LIKE "
			"'0000000000000000%' GROUP BY trace_id ORDER BY trace_id)"),
		"2a 2b 2c");
	assert_int_equal(ask("SELECT count(*) FROM span_log AS w JOIN span_log AS o ON w.parent_span_id = "
	                     "o.span_id AND w.trace_id = o.trace_id WHERE w.operation_name = 'write' AND "
	                     "o.operation_name = 'one of three'"),
	                 3);
	assert_int_equal(ask("SELECT count(DISTINCT span_id) FROM span_log WHERE operation_name = 'write'"),
	                 1);
	assert_int_equal(qp_span_follow(handles, 0), QP_INVALID);
	assert_int_equal(qp_span_follow(handles, 1), QP_OK);
	assert_null(qp_span_here);
	qp_trace_end();
}

static void traces_nest(void **state)
{
	(void)state;
	begin(NULL);
	{
		QP_SPAN("outer trace");
		begin(NULL);
		{
			QP_SPAN("inner trace");
			baz();
		}
		qp_trace_end();
		bar();
	}
	qp_trace_end();
	assert_string_equal(ask_text(TREE_OF("outer trace")), "outer trace .bar");
	assert_string_equal(ask_text(TREE_OF("inner trace")), "inner trace .baz");
	for (int i = 0; i < 16; i++)
		begin(NULL);
	assert_int_equal(qp_trace_begin(NULL), QP_INVALID);
	for (int i = 0; i < 16; i++)
		qp_trace_end();
	assert_null(qp_span_here);
}

static int64_t realtime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* The times are within 1 us of the program's own readings, even if the thread is interrupted. */
static void times_are_the_wall_clock_s(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("timed");

	(void)state;
	for (int i = 0; i < 2000; i++) {
		int64_t before, began, ends, after;
		qp_span span;

		begin(NULL);
		before = realtime();
		span = qp_span_begin(&site);
		began = realtime();
		ends = realtime();
		qp_span_end(span);
		after = realtime();
		qp_span_attr_number(span, "before", before);
		qp_span_attr_number(span, "began", began);
		qp_span_attr_number(span, "ends", ends);
		qp_span_attr_number(span, "after", after);
		qp_trace_end();
	}
	assert_string_equal(
		ask_text("SELECT count(*) || ' ' || sum(start_time_ns < (attribute ->> 'before') - 1000 OR "
	                 "start_time_ns > (attribute ->> 'began') + 1000 OR finish_time_ns < (attribute ->> "
	                 "'ends') - 1000 OR finish_time_ns > (attribute ->> 'after') + 1000) FROM span_log "
	                 "WHERE operation_name = 'timed'"),
		"2000 0");
}

static void attributes_events_and_status(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("noted");
	char longest[2000];
	qp_span span;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	begin(NULL);
	span = qp_span_begin(&site);
	qp_span_attr(span, "user", "\"J\303\266rg\"\n\\");
	qp_span_attr(span, "odd", "\377-\342\202");
	qp_span_attr_number(span, "items", -3);
	qp_span_event(span, "found");
	qp_span_attr(span, "long", longest);
	qp_span_set_status(span, QP_SPAN_ERROR);
	qp_span_end(span);
	qp_span_attr((qp_span){ 0 }, "none", "none");
	qp_trace_end();
	qp_span_attr(span, "late", "late");
	assert_int_equal(
		ask("SELECT attribute ->> 'user' = '\"J\303\266rg\"' || char(10) || '\\' AND attribute "
	            "->> 'odd' = char(65533, 45, 65533, 65533) AND attribute -> 'items' = '-3' AND "
	            "length(attribute ->> 'long') = 1000 AND status = "
	            "'ERROR' FROM span_log WHERE operation_name = 'noted'"),
		1);
	assert_int_equal(ask("SELECT events ->> '$[0].name' = 'found' AND events ->> '$[0].time_ns' BETWEEN "
	                     "start_time_ns AND finish_time_ns FROM span_log WHERE operation_name = 'noted'"),
	                 1);
	assert_int_equal(ask("SELECT spans FROM traces WHERE root = 'noted'"), 1);
}

/* Names are truncated to 255 bytes, and never inside a character. */
static void names_are_cut(void **state)
{
	static char name[400];
	static qp_span_site site = { name, "file", "cut here", 1, 0 };

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	memcpy(name + 254, "\303\266", 2);
	begin(NULL);
	qp_span_end(qp_span_begin(&site));
	qp_trace_end();
	assert_int_equal(ask("SELECT operation_name = substr(replace(hex(zeroblob(127)), '0', 'x'), 1, 254) "
	                     "FROM span_log WHERE function = 'cut here'"),
	                 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_and_what_it_calls),
		cmocka_unit_test(without_a_trace),
		cmocka_unit_test(takes_over_a_traceparent),
		cmocka_unit_test(refuses_what_is_no_traceparent),
		cmocka_unit_test(tasks_on_other_threads),
		cmocka_unit_test(a_span_of_two_threads),
		cmocka_unit_test(a_batch_for_several_requests),
		cmocka_unit_test(traces_nest),
		cmocka_unit_test(times_are_the_wall_clock_s),
		cmocka_unit_test(attributes_events_and_status),
		cmocka_unit_test(names_are_cut),
	};

	return cmocka_run_group_tests(tests, set_up_file, tear_down_file);
}
