#include "handler/ledger.h"

#include <string.h>

#include "handler/thread.h"

/* Late or foreign signals, on threads without a slot. */
static uint64_t slotless[LEDGER_COUNTERS];

/* Relaxed: counters say nothing about other memory. Atomic because other threads read
 * them. */
void ledger_count(struct thread *thread, enum ledger_counter which, uint64_t by)
{
	uint64_t *counter = thread != NULL ? &thread->handler.counters[which] : &slotless[which];

	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

uint64_t ledger_read(enum ledger_counter which)
{
	uint64_t sum = __atomic_load_n(&slotless[which], __ATOMIC_RELAXED);
	uint32_t slots = thread_slots();

	for (uint32_t i = 0; i < slots; i++)
		sum += __atomic_load_n(&thread_slot(i)->handler.counters[which], __ATOMIC_RELAXED);
	return sum;
}

void ledger_reset_in_child(void)
{
	uint32_t slots = thread_slots();

	memset(slotless, 0, sizeof(slotless));
	for (uint32_t i = 0; i < slots; i++)
		memset(thread_slot(i)->handler.counters, 0, sizeof(slotless));
}
