/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query of an engine other than SQLite: what qp_query_begin() (engine.c) and qp_query_start()
 * (handles.c) have in common.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "query/query.h"
#include "queryprof.h"
#include "sqlite/session/session_settings.h"

#define THREADS_TOLD_APART 4096u /* slots that continue others count as those */

/* Handlers count in `run`, so the memory is reused and never freed. */
struct qp_query_handle {
	struct query_run run;
	struct qp_query_handle *next; /* the next free one; for qp_query_begin(): the enclosing query */
	struct session_settings settings;
	struct query_tag tag; /* what a thread pushes */
	char *text, *database, *query_id;
	bool is_shared;                            /* of qp_query_start() */
	struct thread *thread;                     /* of qp_query_begin(), as the next: which pushed it, */
	uint64_t pushed;                           /* under this number */
	uint64_t threads[THREADS_TOLD_APART / 64]; /* atomic: the slots that have entered a shared one */
};

/* Begins a query for the calling thread, which is shown but not pushed yet; `given` NULL: one without a
 * name. A QP_ code; the error names `function`. */
int engine_query_begin(const qp_query *given, const char *function, bool is_shared,
                       struct qp_query_handle **query);

/* Counts the run, which has ended, and logs it if that is worth it. `thread` NULL: not known. */
void engine_query_record(struct qp_query_handle *query, const struct thread *thread, int64_t exception_code,
                         const char *exception);

/* The memory may be used again. */
void engine_query_give(struct qp_query_handle *query);
