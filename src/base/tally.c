/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing with linear probing over the rows' numbers, at most half full.
 */
#include "base/tally.h"

#include <stdlib.h>

#include "base/hash.h"

/* Inline: a key is a few words. */
static inline bool is_equal(const int64_t *one, const int64_t *other, size_t keys)
{
	for (size_t i = 0; i < keys; i++)
		if (one[i] != other[i])
			return false;
	return true;
}

static uint32_t hash_key(const struct tally *tally, const int64_t *key)
{
	return (uint32_t)hash_words((const uint64_t *)key, tally->keys).first;
}

static struct tally_slot *find_slot(const struct tally *tally, const int64_t *key, uint32_t hash)
{
	const size_t mask = tally->capacity - 1;
	size_t at = hash & mask;

	while (tally->slots[at].row &&
	       (tally->slots[at].hash != hash ||
	        !is_equal(tally_at(tally, tally->slots[at].row - 1), key, tally->keys)))
		at = (at + 1) & mask;
	return &tally->slots[at];
}

/* Room for so many rows more. */
static bool grow(struct tally *tally, size_t more)
{
	const size_t capacity = tally->capacity ? 2 * tally->capacity : 1024, mask = capacity - 1;

	if (!vector_reserve(&tally->words, (tally->count + more) * tally->width))
		return false;
	if (2 * (tally->count + more) <= tally->capacity)
		return true;
	struct tally_slot *slots = capacity <= UINT32_MAX ? calloc(capacity, sizeof(*slots)) : NULL;

	if (!slots)
		return false;
	for (size_t i = 0; i < tally->capacity; i++) {
		size_t at = tally->slots[i].hash & mask;

		if (!tally->slots[i].row)
			continue;
		while (slots[at].row)
			at = (at + 1) & mask;
		slots[at] = tally->slots[i];
	}
	free(tally->slots);
	tally->slots = slots;
	tally->capacity = capacity;
	return true;
}

/* There is room. */
static uint32_t find_row(struct tally *tally, const int64_t *key, uint32_t hash)
{
	struct tally_slot *slot = find_slot(tally, key, hash);

	if (!slot->row) {
		int64_t *words = tally_at(tally, tally->count);
		memset(words, 0, tally->width * sizeof(*words));
		memcpy(words, key, tally->keys * sizeof(*key));
		*slot = (struct tally_slot){ (uint32_t)++tally->count, hash };
	}
	return slot->row - 1;
}

size_t tally_row(struct tally *tally, const int64_t *key)
{
	return grow(tally, 1) ? find_row(tally, key, hash_key(tally, key)) : TALLY_NONE;
}

bool tally_rows(struct tally *tally, const int64_t *keys, size_t count, uint32_t *rows)
{
	uint32_t hashes[TALLY_ROWS_MAX];

	if (!grow(tally, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		hashes[i] = hash_key(tally, &keys[i * tally->keys]);
		__builtin_prefetch(&tally->slots[hashes[i] & (tally->capacity - 1)]);
	}
	for (size_t i = 0; i < count; i++) {
		const uint32_t row = tally->slots[hashes[i] & (tally->capacity - 1)].row;

		if (!row)
			continue;
		__builtin_prefetch(tally_at(tally, row - 1), 1);
		__builtin_prefetch(tally_at(tally, row) - 1, 1); /* it may lie in two cache lines */
	}
	for (size_t i = 0; i < count; i++)
		rows[i] = find_row(tally, &keys[i * tally->keys], hashes[i]);
	return true;
}

void tally_keep(struct tally *tally, const bool *is_kept)
{
	const size_t count = tally->count;

	tally->count = 0;
	if (tally->slots)
		memset(tally->slots, 0, tally->capacity * sizeof(*tally->slots));
	for (size_t i = 0; i < count; i++) {
		const size_t row = tally->count;

		if (!is_kept[i])
			continue;
		memmove(tally_at(tally, row), tally_at(tally, i), tally->width * sizeof(int64_t));
		const uint32_t hash = hash_key(tally, tally_at(tally, row));
		*find_slot(tally, tally_at(tally, row), hash) =
			(struct tally_slot){ (uint32_t)++tally->count, hash };
	}
}

void tally_free(struct tally *tally)
{
	vector_free(&tally->words);
	free(tally->slots);
	*tally = (struct tally){ .keys = tally->keys, .width = tally->width };
}
