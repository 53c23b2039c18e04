/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements of the profiler's own: they are neither sampled nor logged.
 */
#ifndef QUERYPROF_SQLITE_RUNS_OWN_STATEMENTS_H
#define QUERYPROF_SQLITE_RUNS_OWN_STATEMENTS_H

#include "sqlite/library/host.h"

struct call;

/* The statement of `db` whose step the calling code is in reads what the profiler
 * found, or sets it up: its time is the profiler's own, which is not sampled and not
 * logged. Nothing when the code is in a step of another connection. */
void own_statements_disown(const sqlite3 *db);

/* The same for the statement of `db` that is being prepared. */
void own_statements_disown_prepared(const sqlite3 *db);

/* Statements that are stepped between these two are the profiler's own: no runs. `frame` is
 * that of the function that calls both. */
void own_statements_begin_quiet(struct call *call, const void *frame);
void own_statements_end_quiet(struct call *call);

#endif
