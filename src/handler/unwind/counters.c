/*
 * The counters of counters.h. Relaxed: each is a number by itself.
 */
#include "handler/unwind/counters.h"

static uint64_t counters[UNWIND_COUNTERS];

void unwind_count(enum unwind_counter which)
{
	__atomic_fetch_add(&counters[which], 1, __ATOMIC_RELAXED);
}

uint64_t unwind_counter(enum unwind_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}
