/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of runs is special: every step searches it, and any thread adds and frees a run without a
 * lock. A statement may have several runs, all in one window, so a search has no deleted entries to
 * pass.
 */
#include "sqlite/runs/runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bounded_wait.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hot_path.h"
#include "handler/running.h"
#include "query/inspect.h"
#include "sqlite/library/sites.h"
#include "sqlite/locks/locks.h"
#include "sqlite/runs/orphans.h"
#include "timers/push.h"
#include "timers/quiesce.h"

#define RUNS 8192u          /* a power of two */
#define WINDOW 16u          /* slots in which a statement may be */
#define KEPT_MAX (RUNS / 4) /* the open ones need room */

struct run_table {
	const void *keys[RUNS]; /* separate from the runs: a window is two cache lines */
	struct run runs[RUNS];
};

static struct run_table *table;
static uint64_t counters[RUNS_COUNTERS];
static uint32_t kept; /* atomic: runs that are */

void runs_count(enum run_counter which)
{
	__atomic_add_fetch(&counters[which], 1, __ATOMIC_RELAXED);
}

uint64_t runs_counter(enum run_counter which)
{
	return which == RUNS_STARTED ? calling_runs() : __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

/* --- the table ------------------------------------------------------------------------ */

bool runs_any_kept(void)
{
	return __atomic_load_n(&kept, __ATOMIC_RELAXED) != 0;
}

static struct run_table *get_table(void)
{
	struct run_table *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE), *made;

	if (now)
		return now;
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	            -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (!__atomic_compare_exchange_n(&table, &now, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(made, sizeof(*made)); /* another thread was first */
		return now;
	}
	return made;
}

static uint32_t window_of(const void *key)
{
	return hash_pointer(key) & (RUNS - 1) & ~(WINDOW - 1);
}

static uint32_t window_of_number(uint64_t number)
{
	return (uint32_t)number * WINDOW & (RUNS - 1);
}

/* Until the run has its owner it is RUN_FREE: no call takes it. */
static struct run *claim_in(struct run_table *runs, uint32_t first, const void *key, uint64_t owner)
{
	for (uint32_t i = first; i < first + WINDOW; i++) {
		const void *empty = NULL;

		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED))
			continue;
		/* Acquire: with the release in runs_free(). */
		if (!__atomic_compare_exchange_n(&runs->keys[i], &empty, key ? key : &runs->runs[i], false,
		                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&runs->runs[i].owner, owner, __ATOMIC_RELAXED);
		return &runs->runs[i];
	}
	return NULL;
}

/* A thread's preparations take the same slot again and again, which is in the caches and has its entry of
 * collect/open_runs.h. Only where so many of its runs without a key are open do they go elsewhere. */
struct run *runs_claim(const void *key, uint64_t owner)
{
	struct run_table *runs = get_table();
	struct run *run = NULL;

	if (runs && key)
		run = claim_in(runs, window_of(key), key, owner);
	else if (runs && !(run = claim_in(runs, window_of_number(call_number_table(owner)), NULL, owner)))
		run = claim_in(runs, window_of_number(owner / CALL_NUMBER_STEP), NULL, owner);
	if (!run)
		runs_count(RUNS_UNTRACKED);
	return run;
}

const void **runs_key(const struct run *run)
{
	return &table->keys[run - table->runs];
}

void runs_free(struct run *run)
{
	query_hide(&run->query);
	span_run_abandon(&run->query.span, !run->is_queryprofs && run->settings.log);
	if (run->database)
		free(run->database);
	run->database = NULL;
	free(run->caller);
	run->caller = NULL;
	runs_set_statement(run, NULL);
	__atomic_store_n(&run->session, NULL, __ATOMIC_RELAXED); /* runs_forget() looks */
	if (run->kept) {
		run->kept = false;
		__atomic_sub_fetch(&kept, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&run->mutex_owner, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&run->owner, RUN_FREE, __ATOMIC_RELAXED);
	/* Release: the next owner finds the slot in its final state. */
	__atomic_store_n(runs_key(run), NULL, __ATOMIC_RELEASE);
}

/* --- owners --------------------------------------------------------------------------- */

static bool acquire(struct run *run, uint64_t from, uint64_t to)
{
	/* Acquire: what the owner before did to the run, see runs_give_back(). Release: an owner that keeps
	 * the run hands it to whoever takes it next. */
	return __atomic_compare_exchange_n(&run->owner, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* `from`: RUN_OPEN or RUN_ENDED. */
struct run *runs_acquire_from(const void *key, uint64_t from, uint64_t owner, bool *is_busy)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t first = window_of(key);

	*is_busy = false;
	for (uint32_t i = first; runs && i < first + WINDOW; i++) {
		struct run *run = &runs->runs[i];

		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) != key)
			continue;
		if (!acquire(run, from, owner)) {
			*is_busy = !runs_has_ended(run);
			return NULL;
		}
		/* It cannot change hands any more, but may have before. */
		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) == key)
			return run;
		if (from == RUN_OPEN)
			runs_give_back(run);
		else
			__atomic_store_n(&run->owner, from, __ATOMIC_RELEASE); /* as that does */
	}
	return NULL;
}

struct run *runs_acquire(const void *key, uint64_t owner, bool *is_busy)
{
	return runs_acquire_from(key, RUN_OPEN, owner, is_busy);
}

void runs_drop_ended(const sqlite3_stmt *stmt)
{
	bool is_busy;
	struct run *run = runs_any_kept() ? runs_acquire_from(stmt, RUN_ENDED, RUN_FREE, &is_busy) : NULL;

	if (run)
		runs_free(run);
}

/* The one that ends reads some numbers and writes a record. In a forked child it may be a
 * thread that is not there. */
BOUNDED_WAIT_DEFINE(for_end, "a statement that is finalized: another thread ends its run", NS_PER_S,
                    "nothing, so it looks again and again; that thread takes microseconds");

static void wait_for_end(const struct run *run, uint64_t owner)
{
	struct bounded_wait wait = bounded_wait_begin(&for_end);

	/* Acquire: its reads happened before. */
	while (__atomic_load_n(&run->owner, __ATOMIC_ACQUIRE) == owner && bounded_wait_nap(&wait, 0))
		;
}

void runs_statement_goes(const sqlite3_stmt *stmt)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t first = window_of(stmt);

	for (uint32_t i = first; runs && i < first + WINDOW; i++) {
		struct run *run = &runs->runs[i];
		uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&runs->keys[i], __ATOMIC_RELAXED) != stmt)
			continue;
		/* This call has the statement: the run can only end meanwhile. Sequentially
		 * consistent, as in runs_claim_end(): one of the two calls sees the other's flag. */
		while (owner > RUN_OPEN && !(owner & OWNER_FLAGS) &&
		       !__atomic_compare_exchange_n(&run->owner, &owner, owner | OWNER_GONE, false,
		                                    __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
			;
		if (owner > RUN_OPEN && owner & OWNER_ENDS)
			wait_for_end(run, owner);
	}
}

bool runs_claim_end(struct run *run)
{
	uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_RELAXED);

	/* As in runs_statement_goes(). */
	return !(owner & OWNER_GONE) &&
	       __atomic_compare_exchange_n(&run->owner, &owner, owner | OWNER_ENDS, false, __ATOMIC_SEQ_CST,
	                                   __ATOMIC_RELAXED);
}

/* The session has one private run less. */
static void uncount(struct session *session)
{
	/* Relaxed: true of another thread, the session is shared below. */
	bool was_inside = __atomic_load_n(&session->biased.is_inside, __ATOMIC_RELAXED);

	if (thread_current && session_enter_private(session, thread_current->id)) {
		__atomic_store_n(&session->private_runs, session->private_runs - 1, __ATOMIC_RELAXED);
		if (!was_inside)
			session_leave_private(session);
	} else {
		session_share(session);
		__atomic_sub_fetch(&session->private_runs, 1, __ATOMIC_RELAXED);
	}
}

static void give_back_session(struct session *session, bool is_there, bool is_private)
{
	if (!is_private)
		session_release(session);
	else if (is_there)
		uncount(session);
}

void runs_release(struct run *run)
{
	struct session *session = run->session;
	bool is_there = runs_is_of_session(run, session), is_private = run->is_private;

	runs_pop(run);
	runs_free(run);
	give_back_session(session, is_there, is_private);
}

bool runs_count_kept(struct run *run)
{
	if (!run->kept && __atomic_add_fetch(&kept, 1, __ATOMIC_RELAXED) > KEPT_MAX)
		__atomic_sub_fetch(&kept, 1, __ATOMIC_RELAXED);
	else
		run->kept = true;
	return run->kept;
}

HOT_PATH void runs_keep(struct run *run, bool is_inside)
{
	struct session *session = run->session;
	uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_RELAXED);

	if (owner & OWNER_GONE || !runs_count_kept(run)) {
		runs_release(run);
		return;
	}
	runs_pop(run);
	query_hide(&run->query);
	span_run_abandon(&run->query.span, run->settings.log);
	__atomic_store_n(&session->has_kept, true, __ATOMIC_RELAXED);
	if (is_inside && run->is_private)
		__atomic_store_n(&session->private_runs, session->private_runs - 1, __ATOMIC_RELAXED);
	else
		give_back_session(session, true, run->is_private);
	if (is_inside) {
		__atomic_store_n(&run->owner, RUN_ENDED, __ATOMIC_RELAXED);
	} else if (!acquire(run, owner, RUN_ENDED)) {
		/* Another thread finalizes the statement, see OWNER_GONE. */
		runs_free(run);
	}
}

void runs_lose(struct run *run, uint64_t owner)
{
	/* The call may return this very moment, on another thread that continues its coroutine:
	 * one of the two has the run. */
	if (!acquire(run, owner, RUN_FREE) && !acquire(run, owner | OWNER_GONE, RUN_FREE))
		return;
	locks_run_is_lost(run);
	runs_count(RUNS_LOST);
	runs_release(run);
}

bool runs_is_inside(const struct session *session)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; runs && i < RUNS; i++)
		/* Relaxed: the caller knows that no call begins. */
		if (__atomic_load_n(&runs->keys[i], __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&runs->runs[i].session, __ATOMIC_RELAXED) == session &&
		    __atomic_load_n(&runs->runs[i].owner, __ATOMIC_RELAXED) > RUN_ENDED)
			return true;
	return false;
}

void runs_forget(struct session *session)
{
	struct run_table *runs = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	bool had_event = false;

	if (!session_has_runs(session) && !(session_has_kept(session) && runs_any_kept()))
		return;
	session_share(session);
	for (uint32_t i = 0; runs && i < RUNS; i++) {
		struct run *run = &runs->runs[i];

		if (!__atomic_load_n(&runs->keys[i], __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&run->session, __ATOMIC_RELAXED) != session)
			continue;
		if (acquire(run, RUN_ENDED, RUN_FREE)) {
			runs_free(run);
			continue;
		}
		if (!acquire(run, RUN_OPEN, RUN_FREE))
			continue;
		/* Another connection's runs come and go meanwhile; this one's cannot. */
		if (run->session != session) {
			runs_give_back(run);
			continue;
		}
		had_event |= run->mutex_owner != NULL;
		runs_release(run);
	}
	/* Another thread's handler may be looking at the mutex that goes now. */
	if (had_event)
		sampler_quiesce();
}

void runs_lose_abandoned(struct calling *calling, const struct host_library *library, const void *frame)
{
	uint64_t number;
	struct run *run;

	/* SQLite's own code calls it inside of what the host has called. */
	if (site_is_hosts(library, (const void *)frame_return_address((uintptr_t)frame)))
		orphans_mark(calling, frame);
	while (calling->used && calling_free_abandoned(calling, frame, &run, &number))
		if (run)
			runs_lose(run, number);
}

/* --- the thread's tag ------------------------------------------------------------------- */

void runs_push_anew(struct run *run, struct thread *thread, const void *frame)
{
	struct query_tag tag = {
		.key = run->is_queryprofs ? (struct query_key){ 0 } : run->query.key,
		.counts = &run->query.counts,
		.frame = (uintptr_t)frame,
		.frame_return = frame ? frame_return_address((uintptr_t)frame) : 0,
		.mutex_owner = run->mutex_owner ? &run->mutex_owner : NULL,
	};

	for (int clock = 0; clock < TIMER_CLOCKS && !run->is_queryprofs; clock++)
		tag.period_ns[clock] = run->settings.period_ns[clock];
	tag.off_cpu_period_ns = run->is_queryprofs ? 0 : run->settings.off_cpu_period_ns;
	run->tag_slot = run->is_queryprofs ? NULL : thread; /* queryprof's own have no key to push again */
	/* Relaxed: a handler compares it. */
	__atomic_store_n(&run->query.counts.slot, thread, __ATOMIC_RELAXED);
	run->tag = sampler_push(thread, &tag);
}

void runs_pop(struct run *run)
{
	if (!run->tag_thread)
		return;
	sampler_remove(run->tag_thread, run->tag);
	run->tag_thread = NULL;
}
