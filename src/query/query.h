/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a query: its identity, its exact times, what other threads may see of it during the run,
 * and the record that ends it. Independent of SQLite; src/sqlite and qp_query_begin() both build on
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hot_path.h"
#include "handler/thread.h"
#include "query/cpu_clock.h"
#include "query/rows.h"
#include "span/run.h"
#include "wire/open_run.h"
#include "wire/statement_counts.h"

struct query_run {
	/* First what each row touches (base/hot_path.h). */
	struct query_key key;
	uint64_t entered_ns, entered_cpu_ns; /* the present call's beginning: CLOCK_MONOTONIC, CPU clock */
	uint64_t left_ns;                    /* the newest call's end */
	uint64_t execution_ns, cpu_ns;       /* of the calls that have ended */
	uint64_t cpu_estimated_ns;           /* of the calls at whose end no clock was read */
	uint64_t rows;
	/* Whoever changes the run writes here what other processes may know; not NULL once it has begun. */
	struct open_run *open;
	uint32_t working;     /* for threads that inspect the run: the thread inside it now, 0: none */
	uint32_t session;     /* set before query_start(); part of the key. 0: none */
	struct span_run span; /* if the thread has a trace */
	struct row_times
		row_times; /* with it on, entered_ns is the newest reading, of a beginning or an end */

	/* Up to the beginning of `counts`: what each run touches, too. */
	uint64_t start_monotonic_ns;
	uint64_t prepare_ns; /* of the run, before its first step */
	uint64_t labels;     /* the number of the set that the thread had entered, 0: none */
	/* For threads that inspect it during the run, see inspect.h. */
	const char *text;              /* NULL: not known */
	uint64_t mark;                 /* inspect.c: how `text` began, */
	uint64_t mark_of;              /* 0xff in its bytes up to the end */
	struct thread_account account; /* of its thread when it began, or up to 1 ms before */
	uint32_t threads;              /* that worked for it, 0: one */
	bool is_logged;                /* its text may be stored; set before query_start() */
	const char *query_id;          /* the user's own, NULL: none */
	struct query_counts counts;    /* and when it began, on which thread, inside which query */

	uint64_t publish_after_ns; /* it is published when it has been open so long, see inspect.h */
	const char *database;      /* NULL: not known */
	const char *library;       /* as query_end has it; stays for ever */

	/* inspect.c only. From here on they belong to this place in memory, whatever run is in it. */
	struct open_run own_open; /* `open`, if it is in no shared memory */
	struct query_run *next;
	bool listed;
	uint64_t version; /* odd: shown. Each run touches it */
};

/* Begins a run and its first call: a new key, the clocks, counts at zero. The caller sets the
 * statement and its opcodes, for the handler. The run is its own initial query until
 * query_set_around() or query_find_around(). Starts no timer. `run` must be in memory that is never
 * unmapped (the handler counts in it), zero-filled at first. */
void query_start(struct query_run *run, struct thread *thread);

/* After query_start(): the run is inside the query that the thread works for in the call whose frame
 * is `frame`, if there is one. */
void query_find_around(struct query_run *run, const struct thread *thread, const void *frame);

/* Directly after query_start(): several threads work for the run at the same time, and its sums
 * include the waits of all. */
static inline void query_share(struct query_run *run)
{
	memset(run->counts.waits, 0, sizeof(run->counts.waits));
	run->counts.has_waits = run->counts.has_threads = true;
}

/* The run's first call begins now. The work of beginning a run, which takes a microsecond with
 * cold caches, is not part of its times: call this immediately before the query is shown to the
 * handler. */
void query_start_clocks(struct query_run *run, struct thread *thread);

/* Gives the run its `open`. Cold: once for each place. */
COLD_PATH void query_find_frame(struct query_run *run);

/* A call that works for the run begins, and has ended. The run's execution time and CPU time are
 * those of its calls, without the program's work in between. Each costs one fast clock, and the
 * thread's CPU clock, which needs system calls, if it was not read in the preceding
 * CPU_CLOCK_VALID_NS; the slow parts are separate functions. A system call may also end the
 * thread's turn, and is part of neither time. So that it has no samples either, show the query to
 * the handler (sampler_push) directly after the one, and hide it directly before the other. */
COLD_PATH void query_enter_slowly(struct query_run *run, struct thread *thread);
COLD_PATH void query_leave_slowly(struct query_run *run, struct thread *thread, uint64_t now);

/* The same for a run in which not every row is measured. `is_step`: a call for the next row. */
void query_enter_among_rows(struct query_run *run, struct thread *thread, bool is_step);
void query_leave_among_rows(struct query_run *run, struct thread *thread);

static inline void query_enter_at(struct query_run *run, const struct thread *thread, uint64_t now)
{
	run->entered_ns = now;
	run->entered_cpu_ns = cpu_clock_estimate(thread, now);
	run->open->entered_ns = now;
	__atomic_store_n(&run->working, thread->id, __ATOMIC_RELAXED); /* only to be seen */
}

static inline void query_enter_clocks(struct query_run *run, struct thread *thread)
{
	uint64_t now;

	if (__builtin_expect(run->row_times.is_on, 0)) {
		query_enter_among_rows(run, thread, false);
		return;
	}
	/* The time is read last, so it is at most the query's own. */
	now = fast_clock_ns(&thread->clock);
	if (__builtin_expect(cpu_clock_is_valid(thread, now), 1))
		query_enter_at(run, thread, now);
	else
		query_enter_slowly(run, thread);
}

static inline void query_enter(struct query_run *run, struct thread *thread)
{
	query_enter_clocks(run, thread);
	span_run_enter(&run->span);
}

static inline uint64_t query_since(uint64_t start, uint64_t now)
{
	return (int64_t)(now - start) > 0 ? now - start : 0;
}

static inline void query_leave_at(struct query_run *run, uint64_t took, uint64_t cpu_ns)
{
	run->left_ns = run->entered_ns + took;
	run->execution_ns += took;
	run->cpu_ns += cpu_ns;
	run->open->entered_ns = 0;
	run->open->execution_ns = run->execution_ns;
	__atomic_store_n(&run->working, 0, __ATOMIC_RELAXED);
}

HOT_INLINE void query_leave(struct query_run *run, struct thread *thread)
{
	uint64_t now, took, cpu_ns;

	if (__builtin_expect(run->row_times.is_on, 0)) {
		query_leave_among_rows(run, thread);
		return;
	}
	/* First of all: what follows is not the query's. */
	now = fast_clock_ns(&thread->clock);
	span_run_leave(&run->span);
	if (__builtin_expect(run->working != thread->id || !cpu_clock_is_valid(thread, now), 0)) {
		query_leave_slowly(run, thread, now);
		return;
	}
	took = cpu_ns = query_since(run->entered_ns, now);
	/* The CPU clock stood still, or was read, since the call began, whose beginning was an estimate. */
	if (__builtin_expect(run->entered_ns < thread->cpu_from_ns, 0)) {
		cpu_ns = query_since(run->entered_cpu_ns, cpu_clock_estimate(thread, now));
		cpu_ns = cpu_ns < took ? cpu_ns : took;
	}
	query_leave_at(run, took, cpu_ns);
	run->cpu_estimated_ns += cpu_ns;
}

/* Whether nothing has happened on the thread since the newest reading but rows that were not measured. */
HOT_INLINE bool query_is_undisturbed(const struct query_run *run, const struct thread *thread)
{
	return thread->clock.newest == run->entered_ns && switch_flag_is_set();
}

/* query_enter() and query_leave() around a row, which may pass unmeasured (query/rows.h). */
HOT_INLINE void query_enter_row(struct query_run *run, struct thread *thread)
{
	if (!run->row_times.is_on) {
		query_enter(run, thread);
	} else if (!run->row_times.is_measured && query_is_undisturbed(run, thread)) {
		run->open->entered_ns = run->entered_ns;
		__atomic_store_n(&run->working, thread->id, __ATOMIC_RELAXED); /* only to be seen */
	} else {
		query_enter_among_rows(run, thread, true);
	}
}

void query_leave_row(struct query_run *run, struct thread *thread);

/* The same, if it is the usual case. Else false, and nothing is done. It calls nothing, so its caller saves
 * no registers. */
HOT_INLINE bool query_leave_usual_row(struct query_run *run, struct thread *thread)
{
	struct row_times *rows = &run->row_times;
	uint64_t now, took;

	if (rows->is_on) {
		if (!rows_may_pass(rows) || !query_is_undisturbed(run, thread))
			return false;
		rows->left--;
		run->open->entered_ns = 0;
		__atomic_store_n(&run->working, 0, __ATOMIC_RELAXED);
		return true;
	}
	if (__builtin_expect(run->rows >= rows->from || run->span.id || run->working != thread->id ||
	                             run->entered_ns < thread->cpu_from_ns ||
	                             !fast_clock_count(&thread->clock),
	                     0))
		return false;
	now = thread->clock.newest;
	if (__builtin_expect(!cpu_clock_is_valid(thread, now), 0))
		return false;
	took = query_since(run->entered_ns, now);
	query_leave_at(run, took, took);
	run->cpu_estimated_ns += took;
	return true;
}

/* The run is inside another query, `parent`, whose initial query it shares. */
static inline void query_set_around(struct query_run *run, struct query_key initial, struct query_key parent)
{
	run->counts.start.initial = initial;
	run->counts.start.parent = parent;
}

/* The work of a run. */
struct query_work {
	int64_t exception_code; /* 0: it did not fail */
	uint64_t rows, vm_steps, fullscan_steps, sorts, autoindexes, reprepares;
};

/* The columns of a finished run in addition to its own times. Texts may be NULL. */
struct query_end {
	struct query_work work;
	const char *query_id; /* given by the user; NULL: the key as UUID */
	const char *query;
	const char *database;
	const char *library;    /* the SQLite library: version, a space, path */
	const char *expanded;   /* the text with the values that were bound */
	bool was_prepared_only; /* all of its time was preparation */
	uint64_t bytecode;      /* as in struct bytecode_record; 0: not known */
	uint64_t off_cpu_period_ns;
	const char *exception;
	const char *call_stack; /* as in wire/call_frame.h */
	size_t call_stack_size; /* 0: not known */
	uint64_t memory_usage;
};

/* Publishes the run's start if it is due, as the handler does after the run's next sample. */
void query_publish_start(struct query_run *run);

/* Withdraws the start that the run's first sample published, because it was not a query of the host. */
void query_withdraw(struct query_run *run);

/* Between these two the run's duration does not advance: a query that was prepared waits for its
 * first step. On the same thread or on another; outside its calls. */
void query_pause(struct query_run *run);
void query_resume(struct query_run *run, struct thread *thread);

static inline bool query_has_samples(const struct query_run *run)
{
	return __atomic_load_n(&run->counts.taken, __ATOMIC_RELAXED) != 0;
}

/* Whether the run had lasted `ns` when its newest call ended. */
static inline bool query_lasted(const struct query_run *run, uint64_t ns)
{
	return run->left_ns - run->start_monotonic_ns >= ns;
}

/* Whether the run, which ended with its newest call, gets a row in query_log: it has samples, or
 * took `ns`. */
HOT_INLINE bool query_is_worth_a_row(const struct query_run *run, uint64_t ns)
{
	return query_has_samples(run) || query_lasted(run, ns);
}

/* Counts the usual run, which ended with its newest call, for its statement: it did not fail or
 * sort, did not include a preparation, and is not nested. False: query_count() must count it. */
bool query_count_plain(const struct query_run *run, uint64_t statement, uint32_t thread, uint64_t vm_steps,
                       uint64_t fullscan_steps);

/* Counts any run, which ended with its newest call, for its statement. `work` NULL: it was a
 * preparation. */
void query_count(const struct query_run *run, uint64_t statement, uint32_t thread,
                 const struct query_work *work);

/* Ends the run's span, or makes a trace of it if the setting trace_statements requires that.
 * `statement` as in statement_stats_find(). */
struct query_span_end {
	uint64_t statement;
	bool is_logged, is_preparation, is_failed;
};
void query_finish_span(struct query_run *run, const struct query_span_end *end);

static inline void query_end_span(struct query_run *run, const struct query_span_end *end)
{
	if (span_run_is_wanted(&run->span))
		query_finish_span(run, end);
}

/* How a run has ended. */
struct query_ending {
	uint64_t statement;     /* as in statement_stats_find() */
	uint64_t least_ns;      /* a run that lasted so long gets a row */
	int64_t exception_code; /* 0: it did not fail */
	bool is_wanted;         /* it gets a row in any case */
	bool is_preparation;    /* of which nothing has run */
	bool is_without_span;   /* several threads worked for it */
};

/* Ends the run, which ended with its newest call and has been counted: and its span, if it has one. True: it
 * gets a row in query_log, because it has samples, lasted, is wanted, or is its statement's first failure of
 * that kind. query_finish() must follow. */
bool query_end_run(struct query_run *run, const struct query_ending *ending);

/* Writes the record of a run that gets a row to the ring.
 * Texts longer than a 16th of the ring are cut (QUERY_TEXT_CUT). After
 * sampler_stop() nothing is written. */
void query_finish(const struct query_run *run, const struct query_end *end);
