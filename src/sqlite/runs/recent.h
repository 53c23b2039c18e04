/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call on a statement that the thread worked for of late: its next row, its reset, or its next
 * run. Nearly all steps of all hosts are such calls, so nothing is looked up here, and what the
 * calls before have left is used again: the thread's place among its calls (calling.h), its tag
 * (timers/push.h), and the run.
 *
 * Only for a thread that is in no other call, and a session that is private to it; anything
 * else goes the way of statements.c.
 */
#ifndef QUERYPROF_SQLITE_RUNS_RECENT_H
#define QUERYPROF_SQLITE_RUNS_RECENT_H

#include "base/way.h"
#include "query/query.h"
#include "sqlite/runs/begin.h"
#include "sqlite/runs/statements.h"
#include "timers/push.h"
#include "timers/threads.h"

/* A call and the thread's run that it continues. In registers: never take its address across a call. */
struct recent_call {
	struct calling *calling;
	struct thread *thread;
	struct run *run;
	uint64_t number;
};

/* The run goes on. A statement that was freed unseen leaves another one at its address, which is
 * not in the middle of a run. */
static inline bool recent_continues(struct run *run, const struct session *session,
                                    const struct host_library *library, sqlite3_stmt *stmt)
{
	return !run->prepared && run->stmt == stmt && runs_is_of_session(run, session) &&
	       host_api(library)->stmt_busy(stmt);
}

/* While the session is private. The run is the call's then, and its clocks run. */
PART_OF_THE_WAY bool recent_take(const struct recent_call *call, struct session *session,
                                 const struct host_library *library, sqlite3_stmt *stmt, bool may_begin)
{
	struct run *run = call->run;
	/* Relaxed: an open run of this session cannot change hands now, nor one that has ended. */
	uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_RELAXED);

	if (owner == RUN_OPEN && recent_continues(run, session, library, stmt)) {
		__atomic_store_n(&run->owner, call->number, __ATOMIC_RELAXED);
		query_enter(&run->query, call->thread);
		return true;
	}
	return owner == RUN_ENDED && may_begin && run->stmt == stmt &&
	       run_begin(run, (struct run_begin){ .session = session,
	                                          .library = library,
	                                          .thread = call->thread,
	                                          .owner = call->number });
}

/* Takes the thread's first place, which is free. Its fields stay the same from row to row. */
PART_OF_THE_WAY void recent_take_place(const struct recent_call *call, const struct host_library *library,
                                       const void *frame)
{
	struct call_place *place = call->calling->places;

	if (place->run != call->run) {
		place->library = library;
		place->running = place->run = call->run;
		place->is_quiet = place->is_exec = place->is_orphan = false;
		place->newest_row = NULL;
	}
	place->frame = (uintptr_t)frame;
	place->frame_return = frame_return_address(place->frame);
	__atomic_store_n(&place->number, call->number, __ATOMIC_RELAXED);
	call->calling->used = 1;
}

PART_OF_THE_WAY void recent_leave_place(struct calling *calling)
{
	call_place_free(calling->places);
	calling->used = 0;
}

/* False: the call goes the other way. */
PART_OF_THE_WAY bool recent_enter(struct recent_call *call, const struct host_library *library,
                                  sqlite3_stmt *stmt, const void *frame, bool may_begin)
{
	struct calling *calling = calling_current;
	struct thread *thread = thread_current;
	struct session *session;
	struct run *run;
	bool is_taken;

	if (!calling || !(run = *calling_recent(calling, stmt)) || calling->used || !thread ||
	    thread->nesting || !sampler_ring())
		return false;
	session = runs_guess_session(run, stmt);
	if (!session || !session_enter_private_again(session, thread->id))
		return false;
	*call = (struct recent_call){ calling, thread, run, calling_number(calling) };
	recent_take_place(call, library, frame);
	is_taken = recent_take(call, session, library, stmt, may_begin);
	session_leave_private(session);
	if (!is_taken) {
		recent_leave_place(calling);
		return false;
	}
	runs_push_alone(run, thread, frame);
	return true;
}

/* Ends a call that recent_enter() let in. False: the thread is not where recent_enter() left it, since a
 * coroutine of the host or a signal handler that jumped may have changed everything; the call ends the
 * other way (recent_resign). Not inlined: the call may end on another thread than it began on, and the
 * caller may have kept the first one's thread pointer. */
bool recent_end(struct run *run, struct thread *thread, struct calling *calling, uint64_t number, int rc);

/* The same call as the other way has it. */
OFF_THE_WAY struct run_call recent_resign(struct recent_call call, const struct host_library *library,
                                          const void *frame);

/* statement_step_begin() and _end(), this way or the other. */
PART_OF_THE_WAY bool recent_step_begin(struct recent_call *recent, struct run_call *step,
                                       const struct host_library *library, sqlite3_stmt *stmt,
                                       const void *frame, const void *caller)
{
	bool is_recent = recent_enter(recent, library, stmt, frame, true);

	if (!is_recent)
		statement_step_begin(step, library, stmt, frame, caller);
	return is_recent;
}

PART_OF_THE_WAY void recent_step_end(bool is_recent, const struct recent_call *recent, struct run_call *step,
                                     int rc, const struct host_library *library, const void *frame)
{
	if (is_recent && recent_end(recent->run, recent->thread, recent->calling, recent->number, rc))
		return;
	if (is_recent)
		*step = recent_resign(*recent, library, frame);
	statement_step_end(step, rc);
}

/* Whether the thread's newest run of the statement has ended. */
PART_OF_THE_WAY bool recent_has_ended(const struct calling *calling, const sqlite3_stmt *stmt)
{
	const struct run *run = calling ? *calling_recent((struct calling *)calling, stmt) : NULL;

	return run && runs_guess_session(run, stmt) && runs_has_ended(run);
}

/* Whether a call without a run can stay unrecorded: the thread is in no other call, and there is one
 * library. (With several, host_find_current() looks for the call.) */
static inline bool recent_is_alone(const struct calling *calling)
{
	/* Relaxed: as in host_library(). */
	return calling && !calling->used && !__atomic_load_n(&host_libraries[1].api, __ATOMIC_RELAXED);
}

/* Both conditions hold: sqlite3_reset() can go straight to SQLite. */
PART_OF_THE_WAY bool recent_is_free(const sqlite3_stmt *stmt)
{
	const struct calling *calling = calling_current;

	return recent_is_alone(calling) && recent_has_ended(calling, stmt);
}

#endif
