/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a query: its identity, its exact times, what other threads may see of it
 * while it lasts, and the record that ends it. Knows nothing of SQLite; src/watch and
 * qp_query_begin() both stand on it.
 */
#ifndef QUERYPROF_QUERY_QUERY_H
#define QUERYPROF_QUERY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/thread.h"
#include "query/statement_counts.h"

struct query_run {
	struct query_key key, initial, parent; /* parent: the query right around it, 0: none */
	uint64_t start_realtime_ns;
	uint64_t start_monotonic_ns;
	uint64_t start_cpu_ns;   /* of the present stretch, within 20 us; see query_continue() */
	uint64_t earlier_cpu_ns; /* of the stretches before */
	uint64_t settled_cpu_ns; /* of the present one, when its thread has ended */
	uint64_t prepare_ns;     /* of the run, before its first step */
	uint32_t thread_id;      /* that began it */
	uint32_t clock_thread;   /* atomic: whose CPU clock the present stretch is on, 0: it has ended */
	uint32_t session;        /* set before query_start(); part of the key. 0: none */
	struct query_counts counts;

	/* For threads that look while it runs, see look.h. `working`: the thread inside it now, 0: none. */
	uint32_t working;
	uint64_t rows;
	const char *text, *database; /* NULL: not known */
	const char *query_id;        /* the user's own, NULL: none */
	const char *library;         /* as query_end has it; stays for ever */

	/* look.c only */
	uint64_t version; /* odd: shown */
	char mark[8];     /* how `text` began */
	struct query_run *next;
	bool listed;
};

/* Begins a run: a fresh key, the clocks, counts at zero. It is its own initial query until
 * query_set_around(). Starts nothing. `run` must be in memory that is never unmapped (the
 * handler counts in it), zero-filled at first.
 *
 * Costs one clock that is read without a system call; and one, the thread's CPU
 * clock, that needs one and is ten times as dear, spared when it was read less than
 * 20 us ago. */
void query_start(struct query_run *run, struct thread *thread);

/* The run is inside another query, `parent`, whose initial query it shares. */
static inline void query_set_around(struct query_run *run, struct query_key initial, struct query_key parent)
{
	run->initial = initial;
	run->parent = parent;
}

/* The run goes on, on this thread. Where that is another thread than before, a stretch
 * ends and one begins: the run's CPU time is the sum of its stretches, and a stretch is
 * what its thread used from its first step there until a step on another thread. A
 * thread's clock can be read from outside, so a run that stays on its thread pays
 * nothing for it. */
void query_move(struct query_run *run, struct thread *thread);

static inline void query_continue(struct query_run *run, struct thread *thread)
{
	if (__builtin_expect(__atomic_load_n(&run->clock_thread, __ATOMIC_RELAXED) != thread->id, 0))
		query_move(run, thread);
}

/* The calling thread ends: if the run's present stretch is on it, the stretch ends, too.
 * Another thread may be at query_continue() for the same run. */
void query_settle(struct query_run *run, const struct thread *thread);

/* What a finished run has to tell beyond its own times. Texts may be NULL. */
struct query_end {
	const char *query_id; /* the user's own; NULL: the key as UUID */
	const char *query;
	const char *database;
	const char *library;    /* the SQLite library: version, a space, path */
	const char *expanded;   /* the text with the values that were bound */
	bool was_prepared_only; /* all of its time was preparation */
	int64_t exception_code;
	const char *exception;
	uint64_t result_rows, vm_steps, fullscan_steps, sorts, autoindexes, reprepares, memory_usage;
};

/* Between these two the run's clocks stand still: a query that was prepared and waits
 * for its first step. On the same thread or on another. */
void query_pause(struct query_run *run, struct thread *thread);
void query_resume(struct query_run *run, struct thread *thread);

/* What the run, which ends now, adds to its statement's counters. `end` NULL: it was a
 * preparation. The CPU time is estimated where the clock was read less than 20 us ago: the
 * thread is taken to have run since. */
struct statement_run query_measure(struct query_run *run, struct thread *thread, const struct query_end *end);

/* Whether the run has lasted `ns` by now, CLOCK_MONOTONIC. */
bool query_lasted(const struct query_run *run, uint64_t ns);

/* Ends the run: reads the clocks and writes its record to the ring. Call it when
 * the run is worth a line in query_log; a run with no record costs nothing more.
 * Texts longer than a 16th of the ring are cut (QUERY_TEXT_CUT). After
 * sampler_stop() nothing is written. */
void query_finish(struct query_run *run, struct thread *thread, const struct query_end *end);

#endif
