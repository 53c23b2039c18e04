/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/shared_entries.h"

#include <string.h>

size_t shared_entries_bytes(const struct shared_entries *entries)
{
	return entries->front + entries->most * entries->size;
}

void shared_entries_attach(struct shared_entries *entries, void *memory)
{
	struct shared_front *front = memory;

	front->used = __atomic_load_n(&entries->used, __ATOMIC_RELAXED);
	/* Release: with shared_entries_acquire(). */
	__atomic_store_n(&entries->here, front, __ATOMIC_RELEASE);
}

void shared_entries_detach_in_child(struct shared_entries *entries)
{
	if (entries->here)
		entries->here->is_left = 1;
	__atomic_store_n(&entries->here, NULL, __ATOMIC_RELAXED);
}

void *shared_entries_acquire(struct shared_entries *entries)
{
	struct shared_front *front = __atomic_load_n(&entries->here, __ATOMIC_ACQUIRE);
	uint32_t index;

	if (!front || __atomic_load_n(&entries->used, __ATOMIC_RELAXED) >= entries->most)
		return NULL;
	index = __atomic_fetch_add(&entries->used, 1, __ATOMIC_RELAXED);
	if (index >= entries->most)
		return NULL;
	/* Relaxed: an entry that is not counted yet describes nothing. */
	__atomic_fetch_add(&front->used, 1, __ATOMIC_RELAXED);
	return (char *)front + entries->front + index * entries->size;
}

uint32_t shared_entries_count(const struct shared_entries *entries, const void *copy)
{
	const struct shared_front *front = copy;

	return front->is_left ? 0 : front->used < entries->most ? front->used : entries->most;
}

size_t shared_entries_used_bytes(const struct shared_entries *entries, const void *copy)
{
	return entries->front + shared_entries_count(entries, copy) * entries->size;
}

uint32_t shared_entries_keep_steady(const struct shared_entries *entries, void *copy, const void *earlier,
                                    const void *later)
{
	const uint32_t before = shared_entries_count(entries, earlier),
		       after = shared_entries_count(entries, later);
	uint32_t changed = 0;

	for (uint32_t i = 0; i < shared_entries_count(entries, copy); i++) {
		const size_t at = entries->front + i * entries->size + entries->state;

		if (i < before && i < after &&
		    !memcmp((const char *)earlier + at, (const char *)later + at, entries->state_size))
			continue;
		memset((char *)copy + at, 0, entries->state_size);
		changed++;
	}
	return changed;
}
