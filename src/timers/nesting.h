/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tags of a thread's running queries: slots that are free, taken, or left in between.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

static inline bool nesting_has_ended(const struct query_tag *tag)
{
	/* Relaxed: it publishes only the slot. */
	return __atomic_load_n(&tag->ended, __ATOMIC_RELAXED);
}

/* Relaxed: the pacer counts the threads that run queries. */
static inline void nesting_set(struct thread *thread, uint32_t nesting)
{
	__atomic_store_n(&thread->nesting, nesting, __ATOMIC_RELAXED);
}

/* The index of a free slot; QUERY_NESTING: there is none. */
static inline uint32_t nesting_find_slot(const struct thread *thread)
{
	uint32_t slot = thread->nesting;

	if (slot < QUERY_NESTING)
		return slot;
	for (slot = 0; slot < QUERY_NESTING && !nesting_has_ended(&thread->queries[slot]);)
		slot++;
	return slot;
}

/* The tag that was pushed under `number`, NULL: none. */
struct query_tag *nesting_find(struct thread *thread, uint64_t number);

/* Slots after the last running query become free without a mark. */
void nesting_trim(struct thread *thread);

/* The newest tag whose query has not ended, NULL if there is none. */
const struct query_tag *nesting_top(const struct thread *thread);
