/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run: it is counted, and logged if it is worth a row. Nearly all runs are later ones of a
 * statement that have not waited for a lock, nor were refused one. Their end is part of the hot path, below:
 * such a run is counted, and stays in the table for the next one.
 */
#pragma once

#include <stddef.h>
#include <string.h>

#include "query/inspect.h"
#include "sqlite/locks/locks.h"
#include "sqlite/locks/transactions.h"
#include "sqlite/runs/begin.h"
#include "sqlite/runs/runs.h"

/* How it ends. In two registers. */
struct run_result {
	struct thread *thread; /* NULL: it is no longer sampled, and the run has no row */
	int rc;
	bool is_locked;     /* under the mutex of the statement's connection since before the real call */
	bool is_in_call;    /* of the host, which works for the run: no reset */
	bool has_statement; /* a preparation: it has made the statement that names it */
};

/* Ends a run, with a row in the log if it is worth one. A successful preparation has none, because
 * its statement includes its time. */
void run_end(struct run *run, struct run_result result);

/* What is rare: counts the run if it is not counted yet, and writes its row if it gets one. */
void runs_record_more(struct run *run, struct run_result result, bool is_counted, bool is_wanted);

/* Whether it has samples, or took long enough. */
bool runs_worth_logging(const struct run *run);

/* --- on the hot path ---------------------------------------------------------------------- */

/* `run` is one that is logged at all. */
HOT_INLINE bool run_is_worth_a_line(const struct run *run)
{
	return query_is_worth_a_row(&run->query, run->settings.min_duration_ns);
}

HOT_INLINE uint64_t run_spent(const struct run *run, enum counted which, int now)
{
	return (uint32_t)now - (uint32_t)run->at_start[which];
}

static inline bool run_is_failure(int rc)
{
	return rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE;
}

/* Of counters that SQLite has not written in most runs, as their difference is of no interest. */
HOT_INLINE bool run_is_same_pair(const int *at_start, const volatile int *now)
{
	return !memcmp(at_start, (const int *)now, 2 * sizeof(*at_start));
}

_Static_assert(COUNTED_AUTOINDEXES == COUNTED_SORTS + 1, "a pair");

/* `run` belongs to a statement. False: it has more to count than most. */
HOT_INLINE bool run_count_plain(struct run *run, const struct thread *thread, int rc)
{
	int values[STATEMENT_COUNTERS], steps;
	const volatile int *now;

	if (run_is_failure(rc))
		return false;
	now = runs_counters(run, values);
	if (!run_is_same_pair(run->at_start + COUNTED_SORTS, now + COUNTED_SORTS) ||
	    now[COUNTED_REPREPARES] != run->at_start[COUNTED_REPREPARES])
		return false;
	steps = now[COUNTED_VM_STEPS];
	run->vm_steps = steps;
	return query_count_plain(&run->query, run->statement, thread->id,
	                         run_spent(run, COUNTED_VM_STEPS, steps),
	                         run_spent(run, COUNTED_FULLSCAN_STEPS, now[COUNTED_FULLSCAN_STEPS]));
}

/* Most runs are only counted. `has_stepped`: it belongs to a statement, and was more than prepared.
 * `is_wanted`: it gets a row. */
HOT_INLINE void run_record(struct run *run, const struct run_result *result, bool has_stepped, bool is_wanted)
{
	bool is_counted = has_stepped && run_count_plain(run, result->thread, result->rc);

	if (__builtin_expect(!is_counted || is_wanted || run_is_worth_a_line(run) ||
	                             span_run_is_wanted(&run->query.span),
	                     0))
		runs_record_more(run, *result, is_counted, is_wanted);
}

/* A kept run is a statement's, and has a text. */
HOT_INLINE bool run_has_plain_flags(const struct run *run)
{
	static const bool plain[] = { true, false, false, true };

	_Static_assert(offsetof(struct run, is_queryprofs) == offsetof(struct run, is_private) + 1 &&
	                       offsetof(struct run, prepared) == offsetof(struct run, is_private) + 2 &&
	                       offsetof(struct run, kept) == offsetof(struct run, is_private) + 3,
	               "of these four");
	return !memcmp((const char *)run + offsetof(struct run, is_private), plain, sizeof(plain));
}

/* Whether run_end() would do no more than run_end_plain(). The thread has the session now. */
HOT_INLINE bool run_is_plain(const struct run *run, const struct session *session,
                             const struct thread *thread, int rc)
{
	return run_has_plain_flags(run) && !run->tag_thread && run->settings.log &&
	       !(__atomic_load_n(&run->owner, __ATOMIC_RELAXED) & OWNER_GONE) &&
	       runs_is_of_session(run, session) && session->db && !session->has_trace_callback &&
	       !(thread->waiting->since | thread->waiting->lock) && !locks_is_refusal(rc);
}

HOT_INLINE void run_end_plain(struct run *run, struct session *session, struct run_result result)
{
	bool is_wanted = __atomic_load_n(&session->transaction.open.number, __ATOMIC_RELAXED) &&
	                 transaction_run_ends(session, run, result.rc);

	run_record(run, &result, true, is_wanted);
	query_hide(&run->query);
	span_run_abandon(&run->query.span, true);
	__atomic_store_n(&session->private_runs, session->private_runs - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&run->owner, RUN_ENDED, __ATOMIC_RELAXED);
}
