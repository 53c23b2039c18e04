/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the host and the run that it works for, in two forms.
 *
 * Any call: struct run_call.
 *
 * A hot call: the next row, the reset or the next run of a statement that the thread recently worked
 * for. The thread is in no other call, and the session is private to it. Nearly all steps of all
 * hosts are such calls, so nothing is looked up, and they reuse what earlier calls left: the thread's
 * slot among its calls (calling.h), its tag (timers/push.h), and the run. The beginning of a call is one
 * function, with the beginning of a run in it (begin.h), and so is its end (end.h).
 */
#pragma once

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

/* In two registers. */
struct hot_call {
	struct run *run; /* NULL: it is not a hot call */
	uint64_t number;
};

/* Parts of the next two. */

/* Takes the thread's first slot, which is free. Its fields stay the same from row to row. */
HOT_INLINE void hot_call_acquire_slot(struct calling *calling, struct run *run, uint64_t number,
                                      const struct host_library *library, const void *frame)
{
	struct call_slot *slot = calling->slots;

	if (slot->run != run) {
		slot->library = library;
		slot->running = slot->run = run;
		slot->is_quiet = slot->is_exec = slot->is_orphan = false;
		slot->newest_row = NULL;
	}
	slot->frame = (uintptr_t)frame;
	slot->frame_return = frame_return_address(slot->frame);
	__atomic_store_n(&slot->number, number, __ATOMIC_RELAXED);
	calling->used = 1;
}

HOT_INLINE void hot_call_release_slot(struct calling *calling)
{
	call_slot_free(calling->slots);
	calling->used = 0;
}

/* While the session is private. If a statement was freed unseen, another one at its address is not in the
 * middle of a run. */
HOT_INLINE bool hot_call_acquire_open(struct run *run, const struct session *session,
                                      const struct host_library *library, sqlite3_stmt *stmt, uint64_t number)
{
	return !run->prepared && host_api(library)->stmt_busy(stmt) &&
	       runs_acquire_private(run, session, stmt, number);
}

/* The thread does not follow the call in this way. */
#define NO_HOT_CALL ((struct hot_call){ .run = NULL })

HOT_INLINE struct hot_call hot_call_begin(const struct host_library *library, sqlite3_stmt *stmt,
                                          const void *frame, struct calling *calling, struct run *run,
                                          bool is_step)
{
	struct thread *thread = thread_current;
	struct session *session;
	bool is_acquired;
	uint64_t number;

	if (calling->used || !thread || thread->nesting || !sampler_ring())
		return NO_HOT_CALL;
	session = runs_guess_session(run, stmt);
	if (!session || !session_enter_private_again(session, thread->id))
		return NO_HOT_CALL;
	number = calling_number(calling);
	hot_call_acquire_slot(calling, run, number, library, frame);
	if (is_step && runs_has_ended(run)) {
		is_acquired = run_begin_again(run, session, host_api(library), calling, number, thread);
	} else {
		is_acquired = hot_call_acquire_open(run, session, library, stmt, number);
		if (is_acquired && is_step)
			query_enter_row(&run->query, thread);
		else if (is_acquired)
			query_enter(&run->query, thread);
	}
	session_leave_private(session);
	if (!is_acquired) {
		hot_call_release_slot(calling);
		return NO_HOT_CALL;
	}
	runs_push_alone(run, thread, frame);
	return (struct hot_call){ run, number };
}

/* Around the real call. The call owns the run, whose clocks are running. A step may begin the run again. A
 * reset is given the thread's table of calls, and the run that calling_recent() has there; neither is NULL.
 */
HOT_INLINE struct hot_call hot_call_step(const struct host_library *library, sqlite3_stmt *stmt,
                                         const void *frame)
{
	struct calling *calling = calling_current;
	struct run *run = calling ? *calling_recent(calling, stmt) : NULL;

	return run ? hot_call_begin(library, stmt, frame, calling, run, true) : NO_HOT_CALL;
}

struct hot_call hot_call_reset(const struct host_library *library, sqlite3_stmt *stmt, const void *frame,
                               struct calling *calling, struct run *run);

/* Ends it, which began in `calling`. False: the thread is not in the state in which the call was begun,
 * because a coroutine of the host or a signal handler that jumped may have changed everything; the call ends
 * like any other (hot_call_spill). Not inlined: the call may end on another thread than it began on, and the
 * caller may have kept the first one's thread pointer. */
bool hot_call_end(struct run *run, struct calling *calling, uint64_t number, int rc);

/* The same after a row: nearly all steps of scans. It saves no registers in the usual case. */
bool hot_call_end_row(struct run *run, struct calling *calling, uint64_t number);

/* The same call, as any other. */
COLD_PATH struct run_call hot_call_spill(struct hot_call call, struct calling *calling,
                                         const struct host_library *library, const void *frame);
