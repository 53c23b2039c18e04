/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of requests: the functions of queryprof.h that begin and end a thread's part. span/handle.c has the
 * others.
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
