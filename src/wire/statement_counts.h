/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of a statement over all its runs, and how threads add to it at the same
 * time: see statement_stats.h.
 *
 * A statement that only one thread has run so far is counted without any atomic operation
 * (base/biased_lock.h). After that a thread that ends a run takes the counter's lock by one exchange,
 * adds, and releases it. It never waits: where another thread has the lock, it adds atomically
 * to a second set. A statement's counts are the sums of both sets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/biased_lock.h"
#include "base/hot_path.h"

/* Statements at most. */
#define STATEMENTS_MAX_MOST 100000

/* A longer text is kept up to here, whole characters. */
#define STATEMENT_TEXT_MAX 8192

/* The sums of every run, and from STATEMENT_PLAIN_SUMS on those of few runs. */
enum statement_sum {
	STATEMENT_CALLS,
	STATEMENT_ROWS,
	STATEMENT_EXECUTION_NS, /* inside SQLite */
	STATEMENT_CPU_NS,
	STATEMENT_CPU_ESTIMATED_NS, /* the part of it for which no clock was read */
	STATEMENT_DURATION_NS,
	STATEMENT_VM_STEPS,
	STATEMENT_FULLSCAN_STEPS,
	STATEMENT_PLAIN_SUMS,
	STATEMENT_ERRORS = STATEMENT_PLAIN_SUMS,
	STATEMENT_NESTED_NS, /* the part of the execution that is also in other queries' times */
	STATEMENT_NESTED_CPU_NS,
	STATEMENT_PREPARES,
	STATEMENT_PREPARE_NS, /* part of the times above */
	STATEMENT_SORTS,
	STATEMENT_AUTOINDEXES,
	STATEMENT_REPREPARES,
	STATEMENT_SUMS,
};

/* Runs by their time inside SQLite: bucket 0 has those below 2^10 ns, bucket i those from 2^(9+i)
 * ns up to 2^(10+i) ns, the last one all longer ones. */
#define STATEMENT_BUCKETS 24
#define STATEMENT_BUCKET_BITS 10

static inline int statement_bucket_of(uint64_t ns)
{
	int bits = ns >> STATEMENT_BUCKET_BITS ? 64 - __builtin_clzll(ns) - STATEMENT_BUCKET_BITS : 0;

	return bits < STATEMENT_BUCKETS ? bits : STATEMENT_BUCKETS - 1;
}

/* Values that only grow. A minimum is kept as its complement, so that zeroed memory means nothing counted. */
enum statement_most { MOST_EXECUTION_NS, MOST_SEEN_NS, LEAST_EXECUTION_NS, LEAST_SEEN_NS, STATEMENT_MOSTS };
enum statement_square { SQUARE_EXECUTION, SQUARE_CPU, STATEMENT_SQUARES };

struct statement_counts {
	/* First what each run changes: fewer lines of the cache. */
	uint64_t most[STATEMENT_MOSTS];
	double squares[STATEMENT_SQUARES]; /* of the runs' times, in ns^2 */
	uint64_t sums[STATEMENT_SUMS];
	uint64_t runs[STATEMENT_BUCKETS];
};

static inline uint64_t statement_least(const struct statement_counts *counts, enum statement_most which)
{
	return counts->most[which] ? ~counts->most[which] : 0;
}

/* The sums of every run: STATEMENT_PLAIN_SUMS without the calls, and when it began. */
struct statement_plain_run {
	uint64_t rows, execution_ns, cpu_ns, cpu_estimated_ns, duration_ns, vm_steps, fullscan_steps;
	uint64_t seen_ns;
};

HOT_INLINE void statement_counts_see(uint64_t *most, uint64_t value)
{
	if (value > *most)
		*most = value;
}

HOT_INLINE void statement_counts_add_plain(struct statement_counts *to, const struct statement_plain_run *run)
{
	uint64_t *sums = to->sums;
	/* Signed, so that the conversion is one instruction. */
	double ns = (double)(int64_t)run->execution_ns, cpu_ns = (double)(int64_t)run->cpu_ns;

	statement_counts_see(&to->most[MOST_EXECUTION_NS], run->execution_ns);
	statement_counts_see(&to->most[LEAST_EXECUTION_NS], ~run->execution_ns);
	statement_counts_see(&to->most[MOST_SEEN_NS], run->seen_ns);
	statement_counts_see(&to->most[LEAST_SEEN_NS], ~run->seen_ns);
	to->squares[SQUARE_EXECUTION] += ns * ns;
	to->squares[SQUARE_CPU] += cpu_ns * cpu_ns;
	sums[STATEMENT_CALLS]++;
	sums[STATEMENT_ROWS] += run->rows;
	sums[STATEMENT_EXECUTION_NS] += run->execution_ns;
	sums[STATEMENT_CPU_NS] += run->cpu_ns;
	sums[STATEMENT_CPU_ESTIMATED_NS] += run->cpu_estimated_ns;
	sums[STATEMENT_DURATION_NS] += run->duration_ns;
	sums[STATEMENT_VM_STEPS] += run->vm_steps;
	sums[STATEMENT_FULLSCAN_STEPS] += run->fullscan_steps;
	to->runs[statement_bucket_of(run->execution_ns)]++;
}

/* One run, or one preparation (STATEMENT_CALLS is 0 then). */
struct statement_run {
	uint64_t sums[STATEMENT_SUMS];
	uint64_t seen_ns; /* since 1970 */
	bool is_plain;    /* only the first STATEMENT_PLAIN_SUMS exist */
};

/* Which part of the statement; zero: the one without a layout and labels. */
struct statement_part {
	uint64_t layout;
	uint64_t labels; /* normalize_comments() */
	uint32_t period; /* how often the layout had changed */
};

/* A statement, or a part of it, with its counts. */
struct statement_stats {
	uint64_t hash; /* 0: "(other)" */
	const char *text, *database;
	bool is_cut;
	const struct statement_counts *counts;
	struct statement_part part;
};

struct statement_counter {
	struct biased_lock biased;
	uint32_t lock;                  /* when `biased` is revoked */
	uint32_t guests;                /* threads that are at `shared` */
	uint32_t generation;            /* the counter's subject has changed with it */
	struct statement_counts own;    /* of the only thread, and of threads that had the lock */
	struct statement_counts shared; /* of threads that found it taken, and merged counts */
};

/* By the thread with this id, 0: it has none. False: the counter has another generation now, and
 * nothing was added. */
bool statement_counter_add(struct statement_counter *counter, uint32_t generation, uint32_t thread,
                           const struct statement_run *run);

/* --- the flusher, and readers, which may wait ------------------------------------------ */

/* The counts until now, by threads that have passed a barrier (biased_lock_barrier()) since
 * they did; others may be seen late. Sums that belong to runs that end meanwhile may be in it in part. */
void statement_counter_read(struct statement_counter *counter, struct statement_counts *counts);

/* Begins a new generation at zero. `counts`: all of the old one. False: not now. */
bool statement_counter_renew(struct statement_counter *counter, struct statement_counts *counts);

/* Adds counts from elsewhere. Not concurrently with statement_counter_renew() of this counter. */
void statement_counter_merge(struct statement_counter *counter, const struct statement_counts *counts);

void statement_counts_add(struct statement_counts *to, const struct statement_counts *from);

/* Whether nothing was added between the two. */
bool statement_counts_are_same(const struct statement_counts *a, const struct statement_counts *b);

/* `counts` minus `before`, an earlier state of it. The maxima are those of `counts`. */
void statement_counts_subtract(struct statement_counts *counts, const struct statement_counts *before);
