/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces begin, and reach other threads: what qp_trace_begin(), qp_span_fork() and the like do
 * once queryprof is known to run.
 */
#pragma once

#include "queryprof.h"

/* The same as the functions of queryprof.h. */
int handle_trace_begin(const char *traceparent);
void handle_traceparent(char text[QP_TRACEPARENT_BYTES]);
qp_span_handle handle_fork(void);
int handle_join(qp_span_handle handle);
int handle_follow(const qp_span_handle *handles, size_t count);
void handle_object_begin(qp_span_object *object, qp_span_site *site);
qp_span_handle handle_of_object(const qp_span_object *object);
void handle_object_end(qp_span_object *object);
