/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/ledger.h"

#include "handler/thread.h"

uint64_t ledger_slotless[LEDGER_COUNTERS];

/* Relaxed: counters say nothing about other memory. Atomic because other threads read
 * them. */
void ledger_count(struct thread *thread, enum ledger_counter which, uint64_t by)
{
	uint64_t *counter = thread != NULL ? &thread->handler.counters[which] : &ledger_slotless[which];

	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}
