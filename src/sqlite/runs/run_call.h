/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the host and the run that it works for, in two forms.
 *
 * Any call: struct run_call.
 *
 * A hot call: the next row, the reset or the next run of a statement that the thread recently worked
 * for. The thread is in no other call, and the session is private to it. Nearly all steps of all
 * hosts are such calls, so nothing is looked up, and they reuse what earlier calls left: the thread's
 * slot among its calls (calling.h), its tag (timers/push.h), and the run.
 */
#ifndef QUERYPROF_SQLITE_RUNS_RUN_CALL_H
#define QUERYPROF_SQLITE_RUNS_RUN_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hot_path.h"
#include "query/query.h"
#include "sqlite/locks/locks.h"
#include "sqlite/runs/begin.h"
#include "sqlite/library/calling.h"
#include "sqlite/runs/end.h"
#include "sqlite/session/session.h"
#include "timers/push.h"
#include "timers/threads.h"

/* --- any call ----------------------------------------------------------------------------- */

/* A call that works for a run; on the wrapper's frame. `frame` is the wrapper's, `caller` the code
 * that calls SQLite. */
struct run_call {
	struct call call;
	struct run *run; /* NULL: none */
	bool is_nested;  /* inside another run, which has the samples */
	/* The connection's mutex, held until the end of the call, so that no other thread frees
	 * what is read then. */
	sqlite3_mutex *mutex;
	/* The outermost run had these at the beginning. */
	struct query_key outermost;
	uint64_t taken, samples[SAMPLE_QUERY_TYPES], weights[SAMPLE_QUERY_TYPES], waits[WAIT_SUMS];
	struct lock_around lock_around;
};

/* The call begins a run, possibly inside others, and works for it. The call's number becomes the
 * run's owner. False: no space. */
bool run_call_begin(struct run_call *call, struct run_begin how);

/* It begins to work for a run, whose clocks the caller starts, and stops. `thread` NULL: it is no
 * longer sampled. */
void run_call_enter(struct run_call *call, struct run *run, struct thread *thread);
void run_call_leave(struct run_call *call, struct thread *thread);

/* The run ends, which the call has left. */
static inline void run_call_end(struct run_call *call, struct thread *thread, int rc)
{
	run_end(call->run, (struct run_result){ thread, rc, .is_locked = call->mutex != NULL });
}

/* The call on the run's statement has returned `rc`: the run stays open after a row, or ends. */
void run_call_return(struct run_call *call, int rc);

/* --- a hot call ---------------------------------------------------------------------------- */

/* In registers: never take its address across a call. */
struct hot_call {
	struct calling *calling;
	struct thread *thread;
	struct run *run;
	uint64_t number;
};

/* While the session is private. Then the call owns the run, whose clocks are running. If a
 * statement was freed unseen, another one at its address is not in the middle of a run. */
HOT_INLINE bool hot_call_acquire(const struct hot_call *call, struct session *session,
                                 const struct host_library *library, sqlite3_stmt *stmt, bool may_begin)
{
	struct run *run = call->run;

	if (runs_has_ended(run))
		return may_begin && run->stmt == stmt &&
		       run_begin(run, (struct run_begin){ .session = session,
		                                          .library = library,
		                                          .thread = call->thread,
		                                          .owner = call->number });
	if (run->prepared || !host_api(library)->stmt_busy(stmt) ||
	    !runs_acquire_private(run, session, stmt, call->number))
		return false;
	if (may_begin) /* a step */
		query_enter_row(&run->query, call->thread);
	else
		query_enter(&run->query, call->thread);
	return true;
}

/* Takes the thread's first slot, which is free. Its fields stay the same from row to row. */
HOT_INLINE void hot_call_acquire_slot(const struct hot_call *call, const struct host_library *library,
                                      const void *frame)
{
	struct call_slot *slot = call->calling->slots;

	if (slot->run != call->run) {
		slot->library = library;
		slot->running = slot->run = call->run;
		slot->is_quiet = slot->is_exec = slot->is_orphan = false;
		slot->newest_row = NULL;
	}
	slot->frame = (uintptr_t)frame;
	slot->frame_return = frame_return_address(slot->frame);
	__atomic_store_n(&slot->number, call->number, __ATOMIC_RELAXED);
	call->calling->used = 1;
}

HOT_INLINE void hot_call_release_slot(struct calling *calling)
{
	call_slot_free(calling->slots);
	calling->used = 0;
}

/* `may_begin`: the run may begin again. False: it is not a hot call. */
HOT_INLINE bool hot_call_enter(struct hot_call *call, const struct host_library *library, sqlite3_stmt *stmt,
                               const void *frame, bool may_begin)
{
	struct calling *calling = calling_current;
	struct thread *thread = thread_current;
	struct session *session;
	struct run *run;
	bool is_busy;

	if (!calling || !(run = *calling_recent(calling, stmt)) || calling->used || !thread ||
	    thread->nesting || !sampler_ring())
		return false;
	session = runs_guess_session(run, stmt);
	if (!session || !session_enter_private_again(session, thread->id))
		return false;
	*call = (struct hot_call){ calling, thread, run, calling_number(calling) };
	hot_call_acquire_slot(call, library, frame);
	is_busy = hot_call_acquire(call, session, library, stmt, may_begin);
	session_leave_private(session);
	if (!is_busy) {
		hot_call_release_slot(calling);
		return false;
	}
	runs_push_alone(run, thread, frame);
	return true;
}

/* Ends a call that hot_call_enter() accepted. False: the thread is not in the state in which
 * hot_call_enter() left it, because a coroutine of the host or a signal handler that jumped may
 * have changed everything; the call ends like any other (hot_call_spill). Not inlined: the call
 * may end on another thread than it began on, and the caller may have kept the first one's thread
 * pointer. */
bool hot_call_end(struct run *run, struct thread *thread, struct calling *calling, uint64_t number, int rc);

/* The same call, as any other. */
COLD_PATH struct run_call hot_call_spill(struct hot_call call, const struct host_library *library,
                                         const void *frame);

#endif
