/*
 * The counters' memory, and their reader outside the handler.
 */
#include "handler/unwind/counters.h"

uint64_t unwind_counters[UNWIND_COUNTERS];

uint64_t unwind_counter(enum unwind_counter which)
{
	return __atomic_load_n(&unwind_counters[which], __ATOMIC_RELAXED);
}
