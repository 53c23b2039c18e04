/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relaxed atomics: each number is independent, and no other read depends on it.
 */
#include "store/control/counters.h"

#include "base/clock.h"

static uint64_t counters[STORE_COUNTERS];

uint64_t store_counter(enum store_counter which)
{
	return which < STORE_COUNTERS ? __atomic_load_n(&counters[which], __ATOMIC_RELAXED) : 0;
}

void store_count(enum store_counter which, uint64_t number)
{
	__atomic_fetch_add(&counters[which], number, __ATOMIC_RELAXED);
}

void store_set_counter(enum store_counter which, uint64_t value)
{
	__atomic_store_n(&counters[which], value, __ATOMIC_RELAXED);
}

void store_count_cpu_time(enum store_counter which, uint64_t *last_ns)
{
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	store_count(which, now - *last_ns);
	*last_ns = now;
}

void store_reset_counters(void)
{
	for (int i = 0; i < STORE_COUNTERS; i++)
		store_set_counter((enum store_counter)i, 0);
}
