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

/* Whether statement_stats_find() would give the number again for the same name. */
HOT_INLINE bool statement_stats_is_found(uint64_t statement)
{
	/* If it is full now, it may have space the next time. */
	return (uint32_t)statement != STATEMENT_OTHER &&
	       statement_is_current(&statement_entry_of(statement)->counter, statement) &&
	       __atomic_load_n(&statement_stats_most, __ATOMIC_RELAXED);
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
	statement_stats_announce_new();
}

#endif
