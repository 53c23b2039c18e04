/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder's counters in the ledger, over all threads.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_COUNTERS_H
#define QUERYPROF_HANDLER_UNWIND_COUNTERS_H

#include <stdint.h>

enum unwind_counter {
	UNWIND_CACHE_MISSES,   /* rules taken from the CFI parser */
	UNWIND_FULL_STEPS,     /* frames that needed all registers */
	UNWIND_NO_RULE,        /* traces that ended at code without a rule */
	UNWIND_BAD_READ,       /* traces that ended at a slot outside the stack */
	UNWIND_UNKNOWN_STACKS, /* traces of stacks other than the thread's own */
	UNWIND_COUNTERS,
};

/* Defined in unwind.c, written by unwind_count(). */
extern uint64_t unwind_counters[UNWIND_COUNTERS] __attribute__((visibility("hidden")));

/* Async-signal-safe. Relaxed: each counter is a number by itself. */
static inline void unwind_count(enum unwind_counter which)
{
	__atomic_fetch_add(&unwind_counters[which], 1, __ATOMIC_RELAXED);
}

static inline uint64_t unwind_counter(enum unwind_counter which)
{
	return __atomic_load_n(&unwind_counters[which], __ATOMIC_RELAXED);
}

#endif
