/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/ledger_reader.h"

#include <stdbool.h>
#include <string.h>

#include "collect/slots.h"

uint64_t ledger_read(enum ledger_counter which)
{
	uint64_t sum = __atomic_load_n(&thread_slotless_counters[which], __ATOMIC_RELAXED);
	uint32_t slots = slots_count();

	for (uint32_t i = 0; i < slots; i++)
		sum += __atomic_load_n(&slots_get(i)->handler.counters[which], __ATOMIC_RELAXED);
	return sum;
}

/* All counters, of about this moment: a handler may run between two of them. Reads each slot once, because
 * with thousands of threads each read misses the cache. */
static void ledger_sum(uint64_t counters[LEDGER_COUNTERS])
{
	uint32_t slots = slots_count();

	for (int which = 0; which < LEDGER_COUNTERS; which++)
		counters[which] = __atomic_load_n(&thread_slotless_counters[which], __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < slots; i++) {
		const uint64_t *of = slots_get(i)->handler.counters;
		for (int which = 0; which < LEDGER_COUNTERS; which++)
			counters[which] += __atomic_load_n(&of[which], __ATOMIC_RELAXED);
	}
}

static bool adds_up(const uint64_t counters[LEDGER_COUNTERS])
{
	uint64_t became = 0;

	for (int which = LEDGER_STORED; which <= LEDGER_REENTERED; which++)
		became += counters[which];
	return counters[LEDGER_SIGNALS] + counters[LEDGER_TAKEN] == became;
}

void ledger_read_all(uint64_t counters[LEDGER_COUNTERS])
{
	for (int tries = 0; tries < 100; tries++) {
		ledger_sum(counters);
		/* The calling thread's own handler may have run in between. */
		if (adds_up(counters) && ledger_read(LEDGER_SIGNALS) == counters[LEDGER_SIGNALS])
			return;
	}
}

void ledger_reset_in_child(void)
{
	uint32_t slots = slots_count();

	memset(thread_slotless_counters, 0, sizeof(thread_slotless_counters));
	for (uint32_t i = 0; i < slots; i++)
		memset(slots_get(i)->handler.counters, 0, sizeof(thread_slotless_counters));
}
