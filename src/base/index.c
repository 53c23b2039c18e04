/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing with linear probing, at most half full. A slot never lies in two cache lines: look-ups in a
 * large index mostly wait for memory. It has 96 bits of the hash, in which a million keys collide with a
 * probability of 10^-17.
 */
#include "base/index.h"

#include <stdlib.h>

/* number: counted from 1; 0: empty. */
struct index_slot {
	uint64_t first;
	uint32_t second, number;
};
_Static_assert(sizeof(struct index_slot) == 16, "a cache line has whole slots");

/* The slot that has the key, or the empty slot to put it in. */
static struct index_slot *find_slot(const struct index *index, uint64_t first, uint32_t second)
{
	const size_t mask = index->capacity - 1;
	size_t at = first & mask;

	while (index->slots[at].number &&
	       (index->slots[at].first != first || index->slots[at].second != second))
		at = (at + 1) & mask;
	return &index->slots[at];
}

static bool grow(struct index *index)
{
	struct index larger = { .capacity = index->capacity ? 2 * index->capacity : 64,
		                .count = index->count };

	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < index->capacity; i++) {
		const struct index_slot slot = index->slots[i];

		if (slot.number)
			*find_slot(&larger, slot.first, slot.second) = slot;
	}
	free(index->slots);
	*index = larger;
	return true;
}

uint32_t index_find(const struct index *index, struct hash key)
{
	const uint32_t number =
		index->capacity ? find_slot(index, key.first, (uint32_t)key.second)->number : 0;

	return number ? number - 1 : INDEX_NONE;
}

uint32_t index_add(struct index *index, struct hash key)
{
	const uint32_t number = (uint32_t)index->count;

	if (number == INDEX_NONE || (2 * index->count >= index->capacity && !grow(index)))
		return INDEX_NONE;
	*find_slot(index, key.first, (uint32_t)key.second) =
		(struct index_slot){ key.first, (uint32_t)key.second, number + 1 };
	index->count++;
	return number;
}

void index_free(struct index *index)
{
	free(index->slots);
	*index = (struct index){ .slots = NULL };
}
