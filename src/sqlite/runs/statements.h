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
#pragma once

#include "sqlite/runs/run_call.h"

void statement_step_begin_any(struct run_call *step, const struct host_library *library, sqlite3_stmt *stmt,
                              const void *frame, const void *caller);
void statement_step_end_any(struct run_call *step, int rc);

/* Around sqlite3_step(). */
HOT_INLINE struct hot_call statement_step_begin(struct run_call *step, const struct host_library *library,
                                                sqlite3_stmt *stmt, const void *frame, const void *caller)
{
	struct hot_call hot = hot_call_step(library, stmt, frame);

	if (__builtin_expect(!hot.run, 0))
		statement_step_begin_any(step, library, stmt, frame, caller);
	return hot;
}

/* `calling`: that of the thread, directly after the beginning. */
HOT_INLINE void statement_step_end(struct hot_call hot, struct calling *calling, struct run_call *step,
                                   int rc, const struct host_library *library, const void *frame)
{
	if (__builtin_expect(hot.run != NULL, 1) &&
	    (rc == SQLITE_ROW ? hot_call_end_row(hot.run, calling, hot.number)
	                      : hot_call_end(hot.run, calling, hot.number, rc)))
		return;
	if (hot.run)
		*step = hot_call_spill(hot, calling, library, frame);
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

/* Resets the statement through `reset`, as part of its run if one is open, which ends with it. Returns what
 * `reset` returns. */
int statement_reset_any(const struct host_library *library, sqlite3_stmt *stmt,
                        statement_reset_function *reset, const void *frame);

/* Whether the thread's newest run of the statement has ended. */
HOT_INLINE bool statement_has_ended(const struct run *recent, const sqlite3_stmt *stmt)
{
	return recent && runs_has_ended(recent) && runs_guess_session(recent, stmt);
}

/* Whether a call without a run can remain unrecorded: the thread is in no other call, and there is
 * only one library. (With several, host_find_current() searches for the call.) */
static inline bool calling_is_alone(const struct calling *calling)
{
	/* Relaxed: as in host_library(). */
	return calling && !calling->used && !__atomic_load_n(&host_libraries[1].api, __ATOMIC_RELAXED);
}

/* The same. A statement whose run has ended goes straight to SQLite. */
HOT_INLINE int statement_reset(const struct host_library *library, sqlite3_stmt *stmt,
                               statement_reset_function *reset, const void *frame)
{
	struct calling *calling = calling_current;
	struct run *recent = calling ? *calling_recent(calling, stmt) : NULL;
	struct hot_call hot = { .run = NULL };
	struct run_call call;
	int rc;

	if (statement_has_ended(recent, stmt) && calling_is_alone(calling))
		return reset(stmt);
	if (recent)
		hot = hot_call_reset(library, stmt, frame, calling, recent);
	if (__builtin_expect(!hot.run, 0))
		return statement_reset_any(library, stmt, reset, frame);
	rc = reset(stmt);
	statement_step_end(hot, calling, &call, rc, library, frame);
	return rc;
}

/* To finalize is to reset and to free. Resets first, if the statement has an open run, so that
 * what the reset undoes counts for the query and the statement can still be read. */
int statement_finalize(const struct host_library *library, sqlite3_stmt *stmt,
                       statement_reset_function *reset, statement_reset_function *finalize,
                       const void *frame);
