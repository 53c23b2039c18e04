/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of requests: the functions of queryprof.h that begin and end them. src/span has the spans
 * themselves.
 */
#include "base/error.h"
#include "recorder/process.h"
#include "span/context.h"
#include "span/handle.h"
#include "handover/storing.h"

static int check(const char *function)
{
	if (!process_running())
		return error_set(QP_NOT_RUNNING, "%s: queryprof is not running, call qp_init() first",
		                 function);
	storing_begin(); /* traces will be written */
	return QP_OK;
}

int qp_trace_begin(const char *traceparent)
{
	int code = check("qp_trace_begin");

	return code ? code : handle_trace_begin(traceparent);
}

void qp_trace_end(void)
{
	context_end();
}

void qp_traceparent(char text[QP_TRACEPARENT_BYTES])
{
	handle_traceparent(text);
}

qp_span_handle qp_span_fork(void)
{
	return handle_fork();
}

int qp_span_join(qp_span_handle handle)
{
	int code = check("qp_span_join");

	return code ? code : handle_join(handle);
}

int qp_span_follow(const qp_span_handle *handles, size_t count)
{
	int code = check("qp_span_follow");

	return code ? code : handle_follow(handles, count);
}

void qp_span_object_begin(qp_span_object *object, qp_span_site *site)
{
	handle_object_begin(object, site);
}

qp_span_handle qp_span_object_handle(const qp_span_object *object)
{
	return handle_of_object(object);
}

void qp_span_object_end(qp_span_object *object)
{
	handle_object_end(object);
}
