/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's calls that prepare, step, reset and finalize statements.
 *
 * Everything that runs inside a statement's steps belongs to it: its samples are the statement's. SQL
 * that SQLite itself runs there (triggers, FTS5, VACUUM) has no runs of its own. SQL that the host's
 * code runs there (its functions and virtual tables) has runs of its own, which name the outermost as
 * their initial query. They are not sampled under their own name, but have exact times, and the
 * number of the outer query's samples taken in them.
 */
#ifndef QUERYPROF_SQLITE_RUNS_STATEMENTS_H
#define QUERYPROF_SQLITE_RUNS_STATEMENTS_H

#include "sqlite/runs/run_call.h"

void statement_step_begin_any(struct run_call *step, const struct host_library *library, sqlite3_stmt *stmt,
                              const void *frame, const void *caller);
void statement_step_end_any(struct run_call *step, int rc);

/* Around sqlite3_step(). True: `hot` has the call, else `step`. */
HOT_INLINE bool statement_step_begin(struct hot_call *hot, struct run_call *step,
                                     const struct host_library *library, sqlite3_stmt *stmt,
                                     const void *frame, const void *caller)
{
	bool is_hot = hot_call_enter(hot, library, stmt, frame, true);

	if (!is_hot)
		statement_step_begin_any(step, library, stmt, frame, caller);
	return is_hot;
}

HOT_INLINE void statement_step_end(bool is_hot, const struct hot_call *hot, struct run_call *step, int rc,
                                   const struct host_library *library, const void *frame)
{
	if (is_hot && hot_call_end(hot->run, hot->thread, hot->calling, hot->number, rc))
		return;
	if (is_hot)
		*step = hot_call_spill(*hot, library, frame);
	statement_step_end_any(step, rc);
}

/* Around sqlite3_exec(), which runs its statements for its caller. */
void statement_exec_begin(struct call *exec, const struct host_library *library, const void *frame,
                          const void *caller);
void statement_exec_end(struct call *exec);

/* The callback of that sqlite3_exec() is about to get a row of the statement. If its callback
 * abandons the statement, SQLite frees it without a call that the hooks see, so its run ends. */
sqlite3_stmt *statement_exec_row(const struct call *exec);
void statement_exec_abandon(const struct call *exec, sqlite3_stmt *stmt);

/* Enclose the preparation of a statement, whose time is part of the query: `text` as the host gave
 * it (UTF-8; NULL: not known), the result and the new statement. Internal statements that read the
 * schema meanwhile have no runs. */
void statement_prepare_begin(struct run_call *prepare, const struct host_library *library, sqlite3 *db,
                             const char *text, const void *frame);
void statement_prepare_end(struct run_call *prepare, int rc, sqlite3_stmt *stmt);

typedef int statement_reset_function(sqlite3_stmt *);

/* Resets the statement through `reset`, as part of its run if one is open, which
 * ends with it. Returns what `reset` returns. A statement without a run does not need this call. */
int statement_reset(const struct host_library *library, sqlite3_stmt *stmt, statement_reset_function *reset,
                    const void *frame);

/* Whether the thread's newest run of the statement has ended. */
HOT_INLINE bool statement_has_ended(const struct calling *calling, const sqlite3_stmt *stmt)
{
	const struct run *run = calling ? *calling_recent((struct calling *)calling, stmt) : NULL;

	return run && runs_guess_session(run, stmt) && runs_has_ended(run);
}

/* Whether a call without a run can remain unrecorded: the thread is in no other call, and there is
 * only one library. (With several, host_find_current() searches for the call.) */
static inline bool calling_is_alone(const struct calling *calling)
{
	/* Relaxed: as in host_library(). */
	return calling && !calling->used && !__atomic_load_n(&host_libraries[1].api, __ATOMIC_RELAXED);
}

/* Both conditions hold: sqlite3_reset() of this statement can go straight to SQLite. */
HOT_INLINE bool statement_is_reset(const sqlite3_stmt *stmt)
{
	const struct calling *calling = calling_current;

	return calling_is_alone(calling) && statement_has_ended(calling, stmt);
}

/* To finalize is to reset and to free. Resets first, if the statement has an open run, so that
 * what the reset undoes counts for the query and the statement can still be read. */
int statement_finalize(const struct host_library *library, sqlite3_stmt *stmt,
                       statement_reset_function *reset, statement_reset_function *finalize,
                       const void *frame);

#endif
