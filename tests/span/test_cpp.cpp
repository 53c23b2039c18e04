// SPDX-License-Identifier: Apache-2.0
// The C++ side: spans end with their scopes, exceptions included.
#include <stdexcept>
#include <thread>

#include "queryprof.hpp"

extern "C" {
#include "support.h"
}

namespace
{

void throws()
{
	static qp_span_site site = QP_SPAN_SITE("throws");
	queryprof::span span(site);
	QP_SPAN("inside");

	span.attribute("text", std::string("value"));
	span.attribute("number", 4711);
	span.event("about to");
	span.status(QP_SPAN_ERROR);
	throw std::runtime_error("out");
}

void exceptions_end_spans(void **)
{
	{
		queryprof::trace trace;
		QP_SPAN("catches");

		assert_int_equal(trace.code(), QP_OK);
		try {
			throws();
		} catch (const std::runtime_error &) {
			QP_SPAN("handles");
		}
	}
	assert_null(qp_span_here);
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name IN ('throws', 'inside', "
	                     "'catches', 'handles') AND NOT unended"),
	                 4);
	assert_int_equal(
		ask("SELECT h.parent_span_id = c.span_id AND t.parent_span_id = c.span_id AND "
	            "i.parent_span_id = t.span_id AND t.status = 'ERROR' AND t.attribute = "
	            "'{\"text\":\"value\",\"number\":4711}' FROM span_log AS c, span_log AS h, span_log "
	            "AS t, span_log AS i WHERE c.operation_name = 'catches' AND h.operation_name = "
	            "'handles' AND t.operation_name = 'throws' AND i.operation_name = 'inside'"),
		1);
}

/* Spans that were begun with the C functions, in code that an exception leaves. */
void leaves()
{
	static qp_span_site site = QP_SPAN_SITE("is left");

	qp_span_begin(&site);
	qp_span_begin(&site);
	throw std::runtime_error("out");
}

void exceptions_leave_spans(void **)
{
	{
		queryprof::trace trace;
		QP_SPAN("around what is left");

		try {
			leaves();
		} catch (const std::runtime_error &) {
		}
	}
	assert_null(qp_span_here);
	assert_int_equal(ask("SELECT count(*) = 2 AND NOT a.unended AND max(l.finish_time_ns) = "
	                     "a.finish_time_ns FROM span_log AS a JOIN span_log AS l USING (trace_id) WHERE "
	                     "a.operation_name = 'around what is left' AND l.operation_name = 'is left' AND "
	                     "l.unended"),
	                 1);
}

void threads_join(void **)
{
	{
		queryprof::trace trace;
		QP_SPAN("starts");
		const qp_span_handle handle = qp_span_fork();
		std::thread([handle] {
			queryprof::trace part(handle);
			QP_SPAN("lambda");
		}).join();
		std::thread([handle] {
			queryprof::trace part(std::vector<qp_span_handle>{ handle, handle });
			QP_SPAN("follows");
		}).join();
	}
	assert_int_equal(ask("SELECT count(*) FROM span_log AS l JOIN span_log AS s ON l.parent_span_id = "
	                     "s.span_id WHERE s.operation_name = 'starts' AND l.operation_name IN ('lambda', "
	                     "'follows')"),
	                 3);
	assert_int_equal(queryprof::trace("none").code(), QP_INVALID);
}

} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exceptions_end_spans),
		cmocka_unit_test(exceptions_leave_spans),
		cmocka_unit_test(threads_join),
	};

	return cmocka_run_group_tests(tests, set_up_file, tear_down_file);
}
