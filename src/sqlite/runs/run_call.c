/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/run_call.h"

#include "sqlite/runs/run_caller.h"
#include "timers/nesting.h"

/* --- the run of any call -------------------------------------------------------------------- */

/* Names the queries around a run that begins in the call. */
static void set_around(struct run *run, const struct call *call, const struct thread *thread)
{
	if (call->around)
		query_set_around(&run->query, call->running->query.counts.start.initial,
		                 call->around->query.key);
	else
		query_find_around(&run->query, thread, call->frame); /* another engine's */
}

static void begin_counts(struct run_call *call, const struct query_counts *counts)
{
	call->taken = __atomic_load_n(&counts->taken, __ATOMIC_RELAXED);
	for (int type = 0; type < SAMPLE_QUERY_TYPES; type++) {
		call->samples[type] = __atomic_load_n(&counts->samples[type], __ATOMIC_RELAXED);
		call->weights[type] = __atomic_load_n(&counts->weights[type], __ATOMIC_RELAXED);
	}
	for (int sum = 0; sum < WAIT_SUMS; sum++)
		call->waits[sum] = counts->has_waits ? counts->waits[sum] : 0;
}

static void add_counts(const struct run_call *call, const struct query_counts *counts)
{
	struct query_counts *own = &call->run->query.counts;

	query_counts_begin(own);
	own->taken += __atomic_load_n(&counts->taken, __ATOMIC_RELAXED) - call->taken;
	for (int type = 0; type < SAMPLE_QUERY_TYPES; type++) {
		own->samples[type] +=
			__atomic_load_n(&counts->samples[type], __ATOMIC_RELAXED) - call->samples[type];
		own->weights[type] +=
			__atomic_load_n(&counts->weights[type], __ATOMIC_RELAXED) - call->weights[type];
	}
	for (int sum = 0; sum < WAIT_SUMS && counts->has_waits; sum++) {
		own->waits[sum] =
			(own->has_waits ? own->waits[sum] : 0) + counts->waits[sum] - call->waits[sum];
	}
	own->has_waits |= counts->has_waits;
}

/* The outermost run keeps counting while a nested one works, so both count that time. */
void run_call_enter(struct run_call *call, struct run *run, struct thread *thread)
{
	call->run = run;
	call->is_nested = call->call.running != NULL;
	if (call->is_nested) {
		call->outermost = call->call.running->query.key;
		begin_counts(call, &call->call.running->query.counts);
		call->lock_around = locks_set_aside(thread);
	} else {
		runs_push(run, thread, call->call.frame);
	}
	call_set_run(&call->call, run);
}

void run_call_leave(struct run_call *call, struct thread *thread)
{
	const struct query_run *outermost = call->is_nested ? &call->call.running->query : NULL;

	if (!call->is_nested)
		runs_pop(call->run);
	if (thread)
		query_leave(&call->run->query, thread);
	if (call->is_nested) {
		/* It may have been lost, and its slot may belong to another run. */
		if (outermost->key.lo == call->outermost.lo && outermost->key.hi == call->outermost.hi)
			add_counts(call, &outermost->counts);
		if (thread)
			locks_resume(thread, call->lock_around);
	}
	call_set_run(&call->call, NULL);
}

bool run_call_begin(struct run_call *call, struct run_begin how)
{
	struct run *run;

	how.owner = call->call.number;
	run = run_begin(&how);
	if (!run)
		return false;
	set_around(run, &call->call, how.thread);
	run_call_enter(call, run, how.thread);
	return true;
}

/* After the run's clocks have stopped: the run waits for its next row, or ends. */
HOT_INLINE void pause_or_end(struct run *run, struct run_result result)
{
	if (result.rc != SQLITE_ROW) {
		run_end(run, result);
	} else {
		run->query.rows++;
		if (run_caller_is_due(run))
			run_caller_read(run);
		runs_give_back_private(run, result.thread);
	}
}

void run_call_return(struct run_call *call, int rc)
{
	struct thread *thread = sampler_thread();

	run_call_leave(call, thread);
	if (call->call.calling == calling_current)
		*calling_recent(calling_current, call->run->stmt) = call->run;
	pause_or_end(call->run,
	             (struct run_result){ thread, rc, .is_locked = call->mutex != NULL, .is_in_call = true });
}

/* --- a hot call ----------------------------------------------------------------------------- */

HOT_PATH struct hot_call hot_call_reset(const struct host_library *library, sqlite3_stmt *stmt,
                                        const void *frame, struct calling *calling, struct run *run)
{
	return hot_call_begin(library, stmt, frame, calling, run, false);
}

struct run_call hot_call_spill(struct hot_call call, struct calling *calling,
                               const struct host_library *library, const void *frame)
{
	return (struct run_call){ .call = { .calling = calling,
		                            .slot = calling->slots,
		                            .number = call.number,
		                            .library = library,
		                            .frame = frame },
		                  .run = call.run };
}

/* False: it is not the plain end of a run. */
HOT_INLINE bool end_plainly(struct run *run, struct thread *thread, int rc)
{
	struct session *session = run->session;
	bool is_plain;

	if (!run->is_private || !session_enter_private_again(session, thread->id))
		return false;
	is_plain = run_is_plain(run, session, thread, rc);
	if (is_plain)
		run_end_plain(run, session,
		              (struct run_result){ .thread = thread, .rc = rc, .is_in_call = true });
	session_leave_private(session);
	return is_plain;
}

/* Whether the thread is in the state in which the call was begun. If no other call has begun in its table,
 * no call has changed that, and none has found that this one was left. */
HOT_INLINE bool is_as_begun(const struct thread *thread, const struct calling *calling, uint64_t number)
{
	return thread && thread == thread_current && calling->numbers == number && thread->nesting == 1;
}

HOT_PATH bool hot_call_end(struct run *run, struct calling *calling, uint64_t number, int rc)
{
	struct thread *thread = run->tag_thread;

	if (!is_as_begun(thread, calling, number) || !sampler_ring())
		return false;
	nesting_set(thread, 0);
	if (rc == SQLITE_ROW)
		query_leave_row(&run->query, thread);
	else
		query_leave(&run->query, thread);
	run->tag_thread = NULL;
	if (rc == SQLITE_ROW || !end_plainly(run, thread, rc))
		pause_or_end(run, (struct run_result){ .thread = thread, .rc = rc, .is_in_call = true });
	hot_call_release_slot(calling);
	return true;
}

HOT_PATH bool hot_call_end_row(struct run *run, struct calling *calling, uint64_t number)
{
	struct thread *thread = run->tag_thread;
	struct session *session = run->session;
	bool is_usual;

	if (!is_as_begun(thread, calling, number) || run_caller_is_due(run) ||
	    !session_enter_private_again(session, thread->id))
		return hot_call_end(run, calling, number, SQLITE_ROW);
	is_usual = query_leave_usual_row(&run->query, thread);
	if (is_usual) {
		nesting_set(thread, 0);
		run->tag_thread = NULL;
		run->query.rows++;
		__atomic_store_n(&run->owner, RUN_OPEN, __ATOMIC_RELAXED);
	}
	session_leave_private(session);
	if (!is_usual)
		return hot_call_end(run, calling, number, SQLITE_ROW);
	hot_call_release_slot(calling);
	return true;
}
