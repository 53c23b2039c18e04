/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/ledger_reader.h"

#include <string.h>

#include "sampler/slots.h"

uint64_t ledger_read(enum ledger_counter which)
{
	uint64_t sum = __atomic_load_n(&ledger_slotless[which], __ATOMIC_RELAXED);
	uint32_t slots = slots_count();

	for (uint32_t i = 0; i < slots; i++)
		sum += __atomic_load_n(&slots_get(i)->handler.counters[which], __ATOMIC_RELAXED);
	return sum;
}

void ledger_reset_in_child(void)
{
	uint32_t slots = slots_count();

	memset(ledger_slotless, 0, sizeof(ledger_slotless));
	for (uint32_t i = 0; i < slots; i++)
		memset(slots_get(i)->handler.counters, 0, sizeof(ledger_slotless));
}
