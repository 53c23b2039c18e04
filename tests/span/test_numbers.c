/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A span stores its parent as the difference of their numbers, in 32 bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queryprof.h"
#include "span/context.h"

static int start(void **state)
{
	(void)state;
	return qp_init(NULL);
}

static int stop(void **state)
{
	(void)state;
	return qp_shutdown();
}

static void one_span(void)
{
	QP_SPAN("one");
}

/* Simulates four million traces inside this trace. */
static void a_parent_too_far_away_is_none(void **state)
{
	static qp_span_site site = QP_SPAN_SITE("far away");
	char outside[QP_TRACEPARENT_BYTES], behind[QP_TRACEPARENT_BYTES];
	qp_span span;

	(void)state;
	assert_int_equal(qp_trace_begin(NULL), QP_OK);
	qp_traceparent(outside);
	span = qp_span_begin(&site);
	span_thread_get()->next += 1ull << 32;
	for (unsigned i = 0; i < CHUNK_ENTRIES; i++)
		one_span();
	qp_traceparent(behind);
	assert_string_equal(behind, outside); /* not the number of a nonexistent span */
	qp_span_end(span);
	one_span();
	qp_traceparent(behind);
	assert_string_equal(behind, outside);
	qp_trace_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parent_too_far_away_is_none),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
