/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of one session.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"
#include "settings/settings.h"

#define QUERY_ID_MAX 128 /* bytes of a user's own query_id, without the zero */

#define SESSION_LABELS_MAX 1000 /* bytes of a session's labels as JSON */

/* Read by the threads that run its queries without a
 * lock, hence small scalars; query_id is taken and cleared under the connection's
 * own serialisation. */
struct session_settings {
	uint64_t period_ns[TIMER_CLOCKS]; /* query_profiler_{cpu,real}_time_period_ns */
	uint64_t off_cpu_period_ns;
	bool allow_introspection_functions;
	bool log_queries;
	uint64_t log_queries_min_query_duration_ns;
	bool log_query_parameters;
	uint64_t stack_trace_timeout_ms;
	bool show_queries_of_other_sessions;
	char query_id[QUERY_ID_MAX + 1];     /* for the next statement; "" none */
	char labels[SESSION_LABELS_MAX + 1]; /* a set as label/pairs.h has it; "" none */
};

/* The settings of a new session. */
void session_defaults(struct session_settings *settings);
