/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's calls that prepare, step, reset and finalize statements.
 *
 * All that runs inside a statement's steps belongs to it: its samples are the statement's.
 * SQL that SQLite itself runs there (triggers, FTS5, VACUUM) has no runs of its own. SQL
 * that the host's code runs there (its functions and virtual tables) has runs of its
 * own besides, which name the outermost as their initial query: they are not sampled
 * under their own name, but have their exact times, and know how many of the outer
 * one's samples were taken in them.
 */
#ifndef QUERYPROF_SQLITE_RUNS_STATEMENTS_H
#define QUERYPROF_SQLITE_RUNS_STATEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sqlite/locks/locks.h"
#include "sqlite/runs/begin.h"
#include "sqlite/runs/calling.h"
#include "sqlite/session/session.h"

struct thread;

/* A call that works for a run; on the wrapper's frame. `frame` is the wrapper's, `caller` the
 * code that calls SQLite. */
struct run_call {
	struct call call;
	struct run *run; /* NULL: none */
	bool is_nested;  /* inside another run, which has the samples */
	/* The connection's, held until the end of the call: so no other thread frees what is
	 * read then. */
	sqlite3_mutex *mutex;
	/* The outermost run had these at the beginning. */
	struct query_key outermost;
	uint64_t samples[TRACE_TYPES], weights[TRACE_TYPES], waits[WAIT_SUMS];
	struct lock_around lock_around;
};

/* The call begins a run, which may be inside of others, and works for it. Its number is the call's. False:
 * there is no room. */
bool run_call_begin(struct run_call *call, struct run_begin how);

/* It works for a run, whose clocks the caller starts, and does so no longer. `thread` NULL: it is not
 * sampled any more. */
void run_call_enter(struct run_call *call, struct run *run, struct thread *thread);
void run_call_leave(struct run_call *call, struct thread *thread);

/* The run ends, which the call has left. */
void run_call_end(struct run_call *call, struct thread *thread, int rc);

/* Around sqlite3_step(), where the way of recent.h is not open. */
void statement_step_begin(struct run_call *step, const struct host_library *library, sqlite3_stmt *stmt,
                          const void *frame, const void *caller);
void statement_step_end(struct run_call *step, int rc);

/* Around sqlite3_exec(), which runs its statements for its caller. */
void statement_exec_begin(struct call *exec, const struct host_library *library, const void *frame,
                          const void *caller);
void statement_exec_end(struct call *exec);

/* The callback of that sqlite3_exec() is about to get a row: the statement. Its callback gives
 * the statement up, which will be freed without a call that the hooks see: its run ends. */
sqlite3_stmt *statement_exec_row(const struct call *exec);
void statement_exec_abandon(const struct call *exec, sqlite3_stmt *stmt);

/* Around the preparation of a statement, whose time is the query's, too: `text` as the
 * host gave it (UTF-8; NULL: not known), the result and the statement made. Internal
 * statements that read the schema meanwhile have no runs. */
void statement_prepare_begin(struct run_call *prepare, const struct host_library *library, sqlite3 *db,
                             const char *text, const void *frame);
void statement_prepare_end(struct run_call *prepare, int rc, sqlite3_stmt *stmt);

typedef int statement_reset_function(sqlite3_stmt *);

/* Resets the statement through `reset`, as part of its run if one is open, which
 * ends with it. Returns what `reset` returns. A statement without a run does not need this call. */
int statement_reset(const struct host_library *library, sqlite3_stmt *stmt, statement_reset_function *reset,
                    const void *frame);

/* To finalize is to reset and to free. Resets first, if the statement has an open run, so that
 * what the reset undoes counts for the query and the statement can still be read. */
int statement_finalize(const struct host_library *library, sqlite3_stmt *stmt,
                       statement_reset_function *reset, statement_reset_function *finalize,
                       const void *frame);

#endif
