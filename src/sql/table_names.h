/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the tables of `system`, in the order in which they are listed: for the
 * schema's image, which is made when the library is built (system_image.c), and for the
 * list of their descriptions in tables.c.
 */
#pragma once

#define TABLES_MODULE_PREFIX "queryprof_"

/* Views of the trace file. */
#define EACH_LOG(_)                                                                                          \
	_(trace_log)                                                                                         \
	_(query_log)                                                                                         \
	_(span_log)                                                                                          \
	_(traces)                                                                                            \
	_(lock_waits)                                                                                        \
	_(transaction_log)                                                                                   \
	_(checkpoints)                                                                                       \
	_(wal_log)                                                                                           \
	_(connections)                                                                                       \
	_(page_io)                                                                                           \
	_(open_statements)                                                                                   \
	_(label_history)                                                                                     \
	_(plan_times)

#define EACH_TABLE(_)                                                                                        \
	EACH_LOG(_)                                                                                          \
	_(statement_stats)                                                                                   \
	_(settings)                                                                                          \
	_(metrics)                                                                                           \
	_(processes)                                                                                         \
	_(stack_trace)                                                                                       \
	_(symbols)                                                                                           \
	_(modules)
