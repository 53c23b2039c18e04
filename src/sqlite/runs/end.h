/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run: it is counted, and has a line in the log if it is worth one.
 */
#ifndef QUERYPROF_SQLITE_RUNS_END_H
#define QUERYPROF_SQLITE_RUNS_END_H

#include "sqlite/runs/runs.h"

/* Ends a run, with a line in the log if it is worth one. `is_locked`: under the mutex of the
 * statement's connection since before the real call. */
void runs_end(struct run *run, struct thread *thread, int rc, bool is_locked);

/* Ends the run of a wait for the connection's mutex, in which nothing of the connection was used. */
void runs_end_wait(struct run *run, const struct thread *thread);

/* Ends the run of a preparation that went well, before the host has the statement, which has its
 * time. The statement's own run, which is kept as one that has ended; NULL: none. */
struct run *runs_end_preparation(struct run *run, const struct thread *thread, sqlite3_stmt *stmt);

/* Whether it has samples, or took long enough. */
bool runs_worth_logging(const struct run *run);

#endif
