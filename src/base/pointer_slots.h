/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing with look-ups without a lock, while its owner adds and removes under one: finds the
 * slot of a pointer among `slots` (a power of two) keys. The other data of a slot is in arrays
 * parallel to the keys. The memory is never unmapped, zero at first, and the data of a removed key's
 * slot may still be read.
 *
 * base/hash_table.h is for data that one thread owns, or a lock protects.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define POINTER_SLOT_NONE UINT32_MAX
/* NULL: never used, ends a search; this: used before. */
#define POINTER_SLOT_REMOVED ((const void *)1)

static inline bool pointer_slot_is_used(const void *key)
{
	return key && key != POINTER_SLOT_REMOVED;
}

static inline uint32_t pointer_slot_find(const void *const *keys, uint32_t slots, const void *key)
{
	for (uint32_t i = hash_pointer(key) & (slots - 1);; i = (i + 1) & (slots - 1)) {
		/* Acquire: what the slot has was stored before its key. */
		const void *found = __atomic_load_n(&keys[i], __ATOMIC_ACQUIRE);

		if (found == key)
			return i;
		if (!found)
			return POINTER_SLOT_NONE;
	}
}

/* Under the lock, like the following: a slot for a key that has none; NONE: there are too many. */
static inline uint32_t pointer_slot_choose(const void *const *keys, uint32_t slots, uint32_t used,
                                           const void *key)
{
	uint32_t i = hash_pointer(key) & (slots - 1);

	while (pointer_slot_is_used(keys[i]))
		i = (i + 1) & (slots - 1);
	return keys[i] || used < slots / 4 * 3 ? i : POINTER_SLOT_NONE;
}

/* The key has the chosen slot. `used`: keys that are not NULL. */
static inline void pointer_slot_publish(const void **keys, uint32_t *used, uint32_t slot, const void *key)
{
	*used += !keys[slot];
	__atomic_store_n(&keys[slot], key, __ATOMIC_RELEASE);
}

static inline void pointer_slot_remove(const void **keys, uint32_t slots, uint32_t *used, uint32_t slot)
{
	__atomic_store_n(&keys[slot], POINTER_SLOT_REMOVED, __ATOMIC_RELEASE);
	/* Removed keys at the end of a row of them can be cleared, because no search continues after them. */
	while (keys[slot] == POINTER_SLOT_REMOVED && !keys[(slot + 1) & (slots - 1)]) {
		__atomic_store_n(&keys[slot], NULL, __ATOMIC_RELEASE);
		--*used;
		slot = (slot - 1) & (slots - 1);
	}
}
