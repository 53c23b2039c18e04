/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/transaction_states.h"

#include <stdbool.h>

static struct transaction_states *here; /* atomic */

static uint32_t used; /* atomic: of this process, as a child's entries are at the same addresses */

size_t transaction_states_bytes(void)
{
	return sizeof(struct transaction_states);
}

void transaction_states_attach(void *memory)
{
	struct transaction_states *table = memory;

	table->used = __atomic_load_n(&used, __ATOMIC_RELAXED);
	/* Release: with transaction_states_acquire(). */
	__atomic_store_n(&here, table, __ATOMIC_RELEASE);
}

void transaction_states_detach_in_child(void)
{
	if (here)
		here->is_left = 1;
	__atomic_store_n(&here, NULL, __ATOMIC_RELAXED);
}

struct transaction_state *transaction_states_acquire(void)
{
	struct transaction_states *table = __atomic_load_n(&here, __ATOMIC_ACQUIRE);
	uint32_t index;

	if (!table || __atomic_load_n(&used, __ATOMIC_RELAXED) >= TRANSACTION_STATES)
		return NULL;
	index = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
	if (index >= TRANSACTION_STATES)
		return NULL;
	/* Relaxed: an entry that is not counted yet has no transaction. */
	__atomic_fetch_add(&table->used, 1, __ATOMIC_RELAXED);
	return &table->entries[index];
}

/* --- copies: of a process that writes at any moment -------------------------------------------------------
 */

static uint32_t count_of(const struct transaction_states *copy)
{
	return copy->is_left ? 0 : copy->used < TRANSACTION_STATES ? copy->used : TRANSACTION_STATES;
}

size_t transaction_states_used_bytes(const void *memory)
{
	return TRANSACTION_STATES_FRONT + count_of(memory) * sizeof(struct transaction_state);
}

uint32_t transaction_states_keep_steady(void *copy, const void *earlier, const void *later)
{
	const struct transaction_states *before = earlier, *after = later;
	struct transaction_states *kept = copy;
	uint32_t changed = 0;

	for (uint32_t i = 0; i < count_of(kept); i++) {
		bool is_steady = i < count_of(before) && i < count_of(after) &&
		                 before->entries[i].number == after->entries[i].number;

		changed += !is_steady;
		if (!is_steady)
			kept->entries[i].number = 0;
	}
	return changed;
}

const struct transaction_state *transaction_states_next(void *copy, uint32_t *from)
{
	struct transaction_states *table = copy;

	while (*from < count_of(table)) {
		struct transaction_state *entry = &table->entries[(*from)++];

		if (!entry->number)
			continue;
		entry->text[sizeof(entry->text) - 1] = entry->path[sizeof(entry->path) - 1] = '\0';
		return entry;
	}
	return NULL;
}
