/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement_stats_add() for nearly all runs: by the only thread that runs the statement, with nothing but
 * the times and counts that every run has. Each value goes from where it is into the statement's sums.
 */
#ifndef QUERYPROF_QUERY_STATEMENT_ADD_H
#define QUERYPROF_QUERY_STATEMENT_ADD_H

#include "base/hot_path.h"
#include "query/statement_stats.h"
#include "wire/statement_memory.h"

/* `statement` is not 0. */
HOT_INLINE struct statement_entry *statement_entry_of(uint64_t statement)
{
	return entry_at((uint32_t)statement);
}

HOT_INLINE bool statement_is_current(const struct statement_counter *counter, uint64_t statement)
{
	return __atomic_load_n(&counter->generation, __ATOMIC_RELAXED) == (uint32_t)(statement >> 32);
}

/* Whether statement_stats_find() would give the number again for the same name. */
HOT_INLINE bool statement_stats_is_found(uint64_t statement)
{
	/* If it is full now, it may have space the next time. */
	return (uint32_t)statement != STATEMENT_OTHER &&
	       statement_is_current(&statement_entry_of(statement)->counter, statement) &&
	       __atomic_load_n(&statement_stats_most, __ATOMIC_RELAXED);
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

/* Between these two, the calling thread, the only one that runs the statement, adds to the result
 * of the first. NULL: use statement_stats_add() for the run. The caller is compiled without
 * ThreadSanitizer, because another thread may be reading, see statement_counter_read(). */
HOT_INLINE struct statement_counts *statement_stats_enter(uint64_t statement, uint32_t thread)
{
	struct statement_counter *counter = statement ? &statement_entry_of(statement)->counter : NULL;

	if (!counter || !biased_lock_reacquire(&counter->bias, thread))
		return NULL;
	if (__builtin_expect(statement_is_current(counter, statement), 1))
		return &counter->own;
	biased_lock_release(&counter->bias);
	return NULL;
}

HOT_INLINE void statement_stats_detach(struct statement_counts *own)
{
	struct statement_counter *counter =
		(struct statement_counter *)((char *)own - offsetof(struct statement_counter, own));

	biased_lock_release(&counter->bias);
	/* Relaxed: statement_stats_next() has every thread pass a barrier. */
	if (__builtin_expect(!__atomic_load_n(&statement_stats_announced, __ATOMIC_RELAXED), 0))
		statement_stats_announce();
}

#endif
