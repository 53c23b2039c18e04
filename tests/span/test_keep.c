/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for keeping traces, the counters, and spans for which there is no room.
 */
#include <pthread.h>
#include <queryprof.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/spin.h"
#include "support.h"

static void pass(int64_t ns)
{
	struct timespec now, start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < ns);
}

/* Records a trace with one span of this duration. */
#define TRACE(name, ns)                                                                                      \
	do {                                                                                                 \
		static qp_span_site site_ = QP_SPAN_SITE(name);                                              \
		trace(&site_, ns);                                                                           \
	} while (0)

static void trace(qp_span_site *site, int64_t ns)
{
	qp_span span;

	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
	span = qp_span_begin(site);
	pass(ns);
	qp_span_end(span);
	qp_trace_end();
}

static int defaults(void **state)
{
	(void)state;
	set("trace_keep", "DEFAULT");
	set("trace_keep_min_duration_ns", "DEFAULT");
	set("trace_keep_one_of", "DEFAULT");
	return 0;
}

static void slow_ones(void **state)
{
	int64_t kept = metric("traces_kept"), left = metric("traces_left_out"), spans = metric("spans");
	int64_t delayed;

	(void)state;
	set("trace_keep", "slow");
	set("trace_keep_min_duration_ns", "100ms");
	TRACE("quick", 1000);
	TRACE("slow", 110000000); /* the clock of spans may lag some ns behind the kernel's */
	TRACE("quick", 1000);
	assert_int_equal(ask("SELECT count(*) FROM traces WHERE root = 'quick' AND duration_ns < 100000000"),
	                 0);
	assert_int_equal(ask("SELECT count(*) FROM traces WHERE root = 'slow' AND duration_ns >= 100000000"),
	                 1);
	/* On a busy machine a quick trace may take as long as a slow one. */
	delayed = ask("SELECT count(*) FROM traces WHERE root = 'quick'");
	assert_int_equal(metric("traces_kept") - kept, 1 + delayed);
	assert_int_equal(metric("traces_left_out") - left, 2 - delayed);
	assert_int_equal(metric("spans") - spans, 1 + delayed);
}

/* Runs a query of an engine, because only queries have samples. */
static void work(uint64_t cpu_ns)
{
	qp_query_begin(NULL);
	spin(cpu_ns);
	qp_query_end(0, NULL);
}

static void *work_elsewhere(void *handle)
{
	if (qp_span_join(*(const qp_span_handle *)handle) == QP_OK) {
		QP_SPAN("elsewhere");
		work(300000000);
	}
	qp_trace_end();
	return NULL;
}

static void those_with_samples(void **state)
{
	qp_span_handle handle;
	pthread_t thread;

	(void)state;
	set("trace_keep", "slow,sampled");
	set("trace_keep_min_duration_ns", "3600s");
	TRACE("no sample", 1000000);
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
	{
		QP_SPAN("sampled");
		work(300000000);
	}
	qp_trace_end();
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
	{
		QP_SPAN("sampled elsewhere");
		handle = qp_span_fork();
		assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, &handle), 0);
		pthread_join(thread, NULL);
	}
	qp_trace_end();
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name = 'no sample'"), 0);
	assert_int_equal(ask("SELECT cpu_time_ns > 0 FROM traces WHERE root = 'sampled'"), 1);
	assert_int_equal(ask("SELECT cpu_time_ns > 0 AND threads = 2 FROM traces WHERE root = 'sampled "
	                     "elsewhere'"),
	                 1);
}

static void *span_elsewhere(void *handle)
{
	if (qp_span_join(*(const qp_span_handle *)handle) == QP_OK) {
		QP_SPAN("elsewhere");
		pass(1000);
	}
	qp_trace_end();
	return NULL;
}

/* Spans that another thread records before and after the decision are not kept either. */
static void other_threads_obey(void **state)
{
	static qp_span_site many = QP_SPAN_SITE("many");
	qp_span_handle handle;
	pthread_t thread;

	(void)state;
	set("trace_keep", "slow");
	set("trace_keep_min_duration_ns", "3600s");
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
	{
		QP_SPAN("left out");
		for (int i = 0; i < 5000; i++)
			qp_span_end(qp_span_begin(&many));
		handle = qp_span_fork();
		assert_int_equal(pthread_create(&thread, NULL, span_elsewhere, &handle), 0);
		pthread_join(thread, NULL);
		assert_true(ask("SELECT sum(count) >= 4000 FROM span_batches WHERE duration_ns IS NULL"));
	}
	qp_trace_end();
	assert_int_equal(pthread_create(&thread, NULL, span_elsewhere, &handle), 0);
	pthread_join(thread, NULL);
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name IN ('left out', 'many', "
	                     "'elsewhere') AND trace_id NOT IN (SELECT trace_id FROM traces)"),
	                 0);
}

/* Readers that follow the file identify a row by its number. */
static void numbers_of_rows_only_grow(void **state)
{
	int64_t newest = ask("SELECT max(id) FROM span_batches");
	qp_span_handle handle;
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 3; i++) {
		set("trace_keep", "slow");
		set("trace_keep_min_duration_ns", "3600s");
		if (qp_trace_begin(NULL))
			fail_msg("%s", qp_error());
		{
			QP_SPAN("left out");
			handle = qp_span_fork();
			assert_int_equal(pthread_create(&thread, NULL, span_elsewhere, &handle), 0);
			pthread_join(thread, NULL);
			assert_true(ask("SELECT max(id) FROM span_batches") > newest);
			newest = ask("SELECT max(id) FROM span_batches");
		}
		qp_trace_end();
		set("trace_keep", "all");
		TRACE("kept", 0);
		assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name = 'left out'"), 0);
		assert_true(ask("SELECT max(id) FROM span_batches") > newest);
		newest = ask("SELECT max(id) FROM span_batches");
	}
	/* The next trace that is left out removes the empty row of the previous one. */
	assert_true(ask("SELECT count(*) FROM span_batches WHERE count = 0") <= 1);
}

/* One of 10 is kept. The number is binomial. */
static void some_at_random(void **state)
{
	int64_t kept = metric("traces_kept"), left = metric("traces_left_out");

	(void)state;
	set("trace_keep", "random");
	set("trace_keep_one_of", "10");
	for (int i = 0; i < 10000; i++)
		TRACE("perhaps", 0);
	kept = metric("traces_kept") - kept;
	left = metric("traces_left_out") - left;
	assert_int_equal(kept + left, 10000);
	/* The mean is 1000, the standard error 30. */
	assert_in_range(kept, 1000 - 6 * 30, 1000 + 6 * 30);
	assert_int_equal(ask("SELECT count(*) FROM traces WHERE root = 'perhaps'"), kept);
}

static void wrong_rules_are_refused(void **state)
{
	static const char *const wrong[] = { "", "slow,", "fast", "slow random,often", "ALL" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(qp_set(NULL, "trace_keep", wrong[i]), QP_INVALID);
		assert_non_null(strstr(qp_error(), "slow, sampled and random"));
	}
	set("trace_keep", "slow, random");
}

/* The trace has more spans than the ring holds, and nothing waits. The trace counts the lost spans. */
static void what_has_no_room_is_counted(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("a million");
	const int64_t all = 1000000;
	static const char lost[] = "SELECT total(samples) FROM losses WHERE reason LIKE 'the ring was full%'";
	int64_t before = metric("spans_dropped"), lost_before = ask(lost), dropped;

	(void)state;
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
	{
		QP_SPAN("flood");
		for (int64_t i = 0; i < all; i++)
			qp_span_end(qp_span_begin(&site));
	}
	qp_trace_end();
	dropped = metric("spans_dropped") - before;
	assert_int_equal(ask("SELECT max(dropped) FROM span_batches WHERE trace_lo = (SELECT trace_lo FROM "
	                     "span_batches WHERE duration_ns IS NOT NULL ORDER BY id DESC LIMIT 1)"),
	                 dropped);
	assert_int_equal(ask("SELECT sum(count) FROM span_batches WHERE trace_lo = (SELECT trace_lo FROM "
	                     "span_batches WHERE duration_ns IS NOT NULL ORDER BY id DESC LIMIT 1)"),
	                 all + 1 - dropped);
	assert_int_equal(ask(lost) - lost_before, dropped);
}

static void a_thread_may_wait_for_room(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("another million");
	int64_t before = metric("spans_dropped");

	(void)state;
	set("trace_wait_ms", "60000");
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
	for (int i = 0; i < 1000000; i++)
		qp_span_end(qp_span_begin(&site));
	qp_trace_end();
	set("trace_wait_ms", "DEFAULT");
	assert_int_equal(metric("spans_dropped"), before);
	assert_int_equal(ask("SELECT spans FROM traces WHERE root = 'another million'"), 1000000);
	/* Each span is stored once, and in order. */
	assert_int_equal(
		ask("SELECT count(*) FROM (SELECT first_span - lag(first_span) OVER (ORDER BY id) AS "
	            "step FROM span_batches WHERE trace_lo = (SELECT trace_lo FROM span_batches "
	            "ORDER BY id DESC LIMIT 1)) WHERE step <> 1000"),
		0);
}

/* When the file reaches its limit, the oldest traces are removed, even if there are no samples. */
static void the_oldest_go_at_the_bound(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("many traces");
	int64_t first;

	(void)state;
	set("trace_wait_ms", "60000");
	set("trace_log_max_bytes", "4MiB");
	for (int i = 0; i < 1000; i++) {
		if (qp_trace_begin(NULL))
			fail_msg("%s", qp_error());
		for (int j = 0; j < 900; j++)
			qp_span_end(qp_span_begin(&site));
		qp_trace_end();
	}
	set("trace_wait_ms", "DEFAULT");
	first = ask("SELECT count(*) FROM traces WHERE root = 'many traces'");
	assert_in_range(first, 10, 500);
	assert_true(metric("store_bytes") < 5 * 1024 * 1024);
	/* The newest traces are complete. */
	assert_int_equal(ask("SELECT spans FROM traces ORDER BY start_time_ns DESC LIMIT 1"), 900);
	assert_int_equal(ask("SELECT count(*) FROM traces WHERE start_time_ns < (SELECT min(start_ns) FROM "
	                     "span_batches)"),
	                 0);
	set("trace_log_max_bytes", "DEFAULT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_oldest_go_at_the_bound, defaults), /* while the file is small */
		cmocka_unit_test_setup(slow_ones, defaults),
		cmocka_unit_test_setup(those_with_samples, defaults),
		cmocka_unit_test_setup(other_threads_obey, defaults),
		cmocka_unit_test_setup(numbers_of_rows_only_grow, defaults),
		cmocka_unit_test_setup(some_at_random, defaults),
		cmocka_unit_test_setup(wrong_rules_are_refused, defaults),
		cmocka_unit_test_setup(what_has_no_room_is_counted, defaults),
		cmocka_unit_test_setup(a_thread_may_wait_for_room, defaults),
	};

	return cmocka_run_group_tests(tests, set_up_file, tear_down_file);
}
