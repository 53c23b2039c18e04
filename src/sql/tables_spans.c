/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.span_log and system.traces: the trace file's views of the same names.
 */
#include "sql/tables.h"

static const struct column span_log_columns[] = {
	{ "trace_id", "TEXT", COLUMN_KEY },
	{ "span_id", "TEXT", COLUMN_KEY },
	{ "parent_span_id", "TEXT", 0 },
	{ "operation_name", "TEXT", 0 },
	{ "kind", "TEXT", 0 },
	{ "start_time_us", "INTEGER", 0 },
	{ "finish_time_us", "INTEGER", 0 },
	{ "finish_date", "TEXT", COLUMN_TIME },
	{ "attribute", "TEXT", 0 },
	{ "thread_id", "INTEGER", 0 },
	{ "query_id", "TEXT", 0 },
	{ "status", "TEXT", 0 },
	{ "unended", "INTEGER", 0 },
	{ "start_time_ns", "INTEGER", 0 },
	{ "finish_time_ns", "INTEGER", 0 },
	{ "duration_ns", "INTEGER", 0 },
	{ "self_time_ns", "INTEGER", 0 },
	{ "samples", "INTEGER", 0 },
	{ "cpu_time_ns", "INTEGER", 0 },
	{ "cpu_time_error_ns", "INTEGER", 0 },
	{ "events", "TEXT", 0 },
	{ "file", "TEXT", 0 },
	{ "line", "INTEGER", 0 },
	{ "function", "TEXT", 0 },
	{ "process_id", "INTEGER", 0 },
	{ "hostname", "TEXT", 0 },
	{ "thread_name", "TEXT", 0 },
	{ "waits", "INTEGER", 0 },
	{ "wait_time_ns", "INTEGER", 0 },
};

static const struct column traces_columns[] = {
	{ "trace_id", "TEXT", COLUMN_KEY },
	{ "root", "TEXT", 0 },
	{ "start_time_microseconds", "TEXT", COLUMN_TIME },
	{ "start_time_ns", "INTEGER", 0 },
	{ "duration_ns", "INTEGER", 0 },
	{ "spans", "INTEGER", 0 },
	{ "statements", "INTEGER", 0 },
	{ "threads", "INTEGER", 0 },
	{ "cpu_time_ns", "INTEGER", 0 },
	{ "dropped", "INTEGER", 0 },
	{ "process_id", "INTEGER", 0 },
	{ "program", "TEXT", 0 },
	{ "wait_time_ns", "INTEGER", 0 },
};

const struct table table_span_log = { .name = "span_log",
	                              TABLE_COLUMNS(span_log_columns),
	                              .log = "span_log" };
const struct table table_traces = { .name = "traces", TABLE_COLUMNS(traces_columns), .log = "traces" };
