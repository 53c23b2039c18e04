/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What qp_trace_begin(), qp_span_join() and qp_span_follow() do once queryprof is known to run.
 */
#pragma once

#include "queryprof.h"

/* The same as the functions of queryprof.h. */
int handle_trace_begin(const char *traceparent);
int handle_join(qp_span_handle handle);
int handle_follow(const qp_span_handle *handles, size_t count);
