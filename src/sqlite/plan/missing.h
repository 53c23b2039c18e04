/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a plan was not read: name, metric, whether a later run of the bytecode cannot change it, and the
 * sentence that the trace file and the metric have.
 */
#pragma once

#define PLANS_MISSING(REASON)                                                                                \
	REASON(PLAN_NOT_REACHED, "plans_not_reached", false,                                                 \
	       "the process ended before it made a call in which queryprof could read the plan unnoticed")   \
	REASON(PLAN_FOREIGN_TABLE, "plans_of_foreign_tables", false,                                         \
	       "queryprof did not see what the module of a virtual table answered when the statement was "   \
	       "prepared, or had no time to use it")                                                         \
	REASON(PLAN_FOREIGN_MODULE, "plans_of_unknown_modules", false,                                       \
	       "queryprof could not replace the methods of a virtual table's module, which may be in "       \
	       "allocated memory")                                                                           \
	REASON(PLAN_FOREIGN_REPORTED, "plans_of_reported_statements", true,                                  \
	       "the statement has a virtual table, and SQLite would report it to the error log once more")   \
	REASON(PLAN_FOREIGN_DIFFERENT, "plans_of_other_answers", true,                                       \
	       "SQLite would not ask the module of a virtual table again what it asked before")              \
	REASON(PLAN_AUTHORIZER, "plans_behind_authorizers", false, "the connection has an authorizer")       \
	REASON(PLAN_PROGRESS_HANDLER, "plans_behind_progress_handlers", false,                               \
	       "the connection has a progress handler")                                                      \
	REASON(PLAN_TOO_LARGE, "plans_too_large", true, "the statement's program is too large to be read")   \
	REASON(PLAN_LAYOUT_UNKNOWN, "plans_of_unknown_layouts", true,                                        \
	       "the layout of this SQLite's statements is not known")                                        \
	REASON(PLAN_CLOSED, "plans_of_closed_connections", false,                                            \
	       "the connection was closed before the plan could be read")                                    \
	REASON(PLAN_ERROR_IN_USE, "plans_behind_errors", false,                                              \
	       "the program could still read an error of the connection")                                    \
	REASON(PLAN_TOO_LONG, "plans_too_long", true,                                                        \
	       "the statement with EXPLAIN QUERY PLAN is longer than the connection allows")                 \
	REASON(PLAN_REFUSED, "plans_refused", true, "SQLite did not prepare the statement again")            \
	REASON(PLAN_DIFFERENT, "plans_different", true,                                                      \
	       "after SQLite prepared the statement again, its program differed from the one that ran")      \
	REASON(PLAN_TRACED, "plans_of_traced_statements", true,                                              \
	       "only sqlite3_trace_v2 reports the statement, and only during its run")                       \
	REASON(PLAN_OF_NO_QUERY, "plans_of_no_queries", true,                                                \
	       "SQLite explains only SELECT, VALUES, INSERT, REPLACE, UPDATE and DELETE")

enum bytecode_counter {
	BYTECODE_READ,
#define PLAN_ENUM(name, metric, is_lasting, sentence) name,
	PLANS_MISSING(PLAN_ENUM)
#undef PLAN_ENUM
		BYTECODE_COUNTERS,
};
