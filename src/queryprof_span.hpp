/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans of queryprof.h for C++: they end with their scope, also when an exception leaves it.
 *
 *	void parse()
 *	{
 *		static qp_span_site site = QP_SPAN_SITE("parse");
 *		queryprof::span span(site);
 *		...
 *	}
 *
 * QP_SPAN("parse") does the same. C++11 and later.
 */
#ifndef QUERYPROF_SPAN_HPP
#define QUERYPROF_SPAN_HPP

#include <string>
#include <vector>

#include "queryprof.h"

namespace queryprof
{

/* The running span of its thread from here to the end of the scope. */
class span
{
    public:
	explicit span(qp_span_site &site) noexcept : span_(qp_span_begin(&site)) {}
	~span() { qp_span_end(span_); }
	span(const span &) = delete;
	span &operator=(const span &) = delete;

	void attribute(const char *key, const char *value) noexcept { qp_span_attr(span_, key, value); }
	void attribute(const char *key, const std::string &value) noexcept
	{
		qp_span_attr(span_, key, value.c_str());
	}
	void attribute(const char *key, int64_t value) noexcept { qp_span_attr_number(span_, key, value); }
	void event(const char *name) noexcept { qp_span_event(span_, name); }
	void status(qp_span_status status) noexcept { qp_span_set_status(span_, status); }

	qp_span get() const noexcept { return span_; }

    private:
	qp_span span_;
};

/* The thread's part of a trace, to the end of the scope: a trace of its own, or another thread's.
 * Without queryprof running, or without memory, there is none, and `code` says why. */
class trace
{
    public:
	explicit trace(const char *traceparent = nullptr) noexcept : code_(qp_trace_begin(traceparent)) {}
	explicit trace(qp_span_handle parent) noexcept : code_(qp_span_join(parent)) {}
	explicit trace(const std::vector<qp_span_handle> &parents) noexcept
		: code_(qp_span_follow(parents.data(), parents.size()))
	{
	}
	~trace()
	{
		if (code_ == QP_OK)
			qp_trace_end();
	}
	trace(const trace &) = delete;
	trace &operator=(const trace &) = delete;

	int code() const noexcept { return code_; }

    private:
	int code_;
};

} /* namespace queryprof */

#endif
