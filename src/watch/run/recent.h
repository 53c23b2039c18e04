/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call on a statement that the thread worked for of late: its next row, its reset, or its next
 * run. Nearly all steps of all hosts are such calls, so nothing is looked up here, and what the
 * calls before have left is used again: the thread's place among its calls (calling.h), its tag
 * (sampler/push.h), and the run.
 *
 * Only for a thread that is in no other call, and a session that is private to it; anything
 * else goes the way of statements.c.
 */
#ifndef QUERYPROF_WATCH_RECENT_H
#define QUERYPROF_WATCH_RECENT_H

#include "base/way.h"
#include "sampler/push.h"
#include "sampler/threads.h"
#include "watch/run/run_begin.h"
#include "watch/run/statements.h"

/* The run goes on. A statement that was freed unseen leaves another one at its address, which is
 * not in the middle of a run. */
static inline bool recent_continues(struct run *run, const struct session *session,
                                    const struct host_library *library, sqlite3_stmt *stmt)
{
	return !run->prepared && run->stmt == stmt && runs_is_of_session(run, session) &&
	       library->api->stmt_busy(stmt);
}

/* It has ended, and its statement runs again. The settings that it has copied want samples, as those
 * of every run that begins. */
static inline bool recent_begins(struct run *run, const struct session *session,
                                 const struct host_library *library, sqlite3_stmt *stmt)
{
	return run->stmt == stmt && runs_is_of_session(run, session) && runs_has_settings_of(run, session) &&
	       library->api->db_handle(stmt) == session->db && runs_is_same_text(run);
}

/* While the session is private. The run is the call's then, and its clocks run. */
static inline bool recent_take(const struct run_call *call, struct run *run, struct session *session,
                               sqlite3_stmt *stmt, bool may_begin)
{
	const struct host_library *library = call->call.library;
	/* Relaxed: an open run of this session cannot change hands now, nor one that has ended. */
	uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_RELAXED);

	if (owner == RUN_OPEN && recent_continues(run, session, library, stmt)) {
		__atomic_store_n(&run->owner, call->call.number, __ATOMIC_RELAXED);
		query_enter(&run->query, call->alone);
		return true;
	}
	if (owner != RUN_ENDED || !may_begin || !recent_begins(run, session, library, stmt))
		return false;
	runs_begin_again(run, call->call.number, call->alone);
	return true;
}

/* The first place, which nobody has. What it says stays as it is from row to row. */
static inline void recent_take_place(struct run_call *call, struct run *run)
{
	struct call_place *place = call->call.place;

	if (place->run != run) {
		place->library = call->call.library;
		place->running = place->run = run;
		place->is_quiet = place->is_exec = place->is_orphan = false;
		place->newest_row = NULL;
	}
	place->frame = (uintptr_t)call->call.frame;
	place->frame_return = frame_return_address(place->frame);
	__atomic_store_n(&place->number, call->call.number, __ATOMIC_RELAXED);
	call->call.calling->used = 1;
}

static inline void recent_leave_place(const struct run_call *call)
{
	call_place_free(call->call.place);
	call->call.calling->used = 0;
}

/* False: the call goes the other way. */
ON_THE_WAY static inline bool recent_enter(struct run_call *call, const struct host_library *library,
                                           sqlite3_stmt *stmt, const void *frame, bool may_begin)
{
	struct calling *calling = calling_current;
	struct thread *thread = thread_current;
	struct session *session;
	struct run *run;
	bool is_taken;

	call->alone = NULL;
	if (!calling || !(run = *calling_recent(calling, stmt)) || calling->used || !thread ||
	    thread->nesting || !sampler_ring())
		return false;
	session = runs_guess_session(run, stmt);
	if (!session || !session_enter_private(session, thread->id))
		return false;
	call->call.calling = calling;
	call->call.place = calling->places;
	call->call.number = calling_number(calling);
	call->call.library = library;
	call->call.frame = frame;
	call->run = run;
	call->alone = thread;
	recent_take_place(call, run);
	is_taken = recent_take(call, run, session, stmt, may_begin);
	session_leave_private(session);
	if (!is_taken) {
		recent_leave_place(call);
		call->alone = NULL;
		return false;
	}
	runs_push(run, thread, frame);
	return true;
}

/* The rest of the call is filled in, for the other way. */
OFF_THE_WAY void recent_resign(struct run_call *call);

/* Whether the thread is where recent_enter() left it: a coroutine of the host's, or a signal's
 * handler that jumped, may have changed everything. The call ends the other way then. */
static inline bool recent_leave(struct run_call *call)
{
	struct thread *thread = call->alone;
	struct run *run = call->run;

	if (thread != thread_current || call->call.calling->used != 1 ||
	    call_place_number(call->call.place) != call->call.number ||
	    !runs_is_own(run, call->call.number) || thread->nesting != 1 ||
	    thread->queries[0].number != run->tag || !sampler_ring()) {
		recent_resign(call);
		return false;
	}
	thread->nesting = 0;
	query_leave(&run->query, thread);
	run->tag_thread = NULL;
	return true;
}

#endif
