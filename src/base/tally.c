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

static size_t hash_key(const struct tally *tally, const int64_t *key)
{
	return hash_words((const uint64_t *)key, tally->keys).first;
}

static uint32_t *find_slot(const struct tally *tally, const int64_t *key, size_t hash)
{
	const size_t mask = tally->capacity - 1;
	size_t at = hash & mask;

	while (tally->slots[at] && !is_equal(tally_at(tally, tally->slots[at] - 1), key, tally->keys))
		at = (at + 1) & mask;
	return &tally->slots[at];
}

/* They are empty. */
static void fill_slots(struct tally *tally)
{
	for (size_t i = 0; i < tally->count; i++) {
		const int64_t *key = tally_at(tally, i);
		*find_slot(tally, key, hash_key(tally, key)) = (uint32_t)i + 1;
	}
}

/* Room for so many rows more. */
static bool grow(struct tally *tally, size_t more)
{
	const size_t capacity = tally->capacity ? 2 * tally->capacity : 1024;

	if (!vector_reserve(&tally->words, (tally->count + more) * tally->width))
		return false;
	if (2 * (tally->count + more) <= tally->capacity)
		return true;
	uint32_t *slots = capacity <= UINT32_MAX ? calloc(capacity, sizeof(*slots)) : NULL;

	if (!slots)
		return false;
	free(tally->slots);
	tally->slots = slots;
	tally->capacity = capacity;
	fill_slots(tally);
	return true;
}

/* There is room. */
static uint32_t find_row(struct tally *tally, const int64_t *key, size_t hash)
{
	uint32_t *slot = find_slot(tally, key, hash);

	if (!*slot) {
		int64_t *words = tally_at(tally, tally->count);
		memset(words, 0, tally->width * sizeof(*words));
		memcpy(words, key, tally->keys * sizeof(*key));
		*slot = (uint32_t)++tally->count;
	}
	return *slot - 1;
}

size_t tally_row(struct tally *tally, const int64_t *key)
{
	return grow(tally, 1) ? find_row(tally, key, hash_key(tally, key)) : TALLY_NONE;
}

bool tally_rows(struct tally *tally, const int64_t *keys, size_t count, uint32_t *rows)
{
	size_t hashes[TALLY_ROWS_MAX];

	if (!grow(tally, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		hashes[i] = hash_key(tally, &keys[i * tally->keys]);
		__builtin_prefetch(&tally->slots[hashes[i] & (tally->capacity - 1)]);
	}
	for (size_t i = 0; i < count; i++) {
		const uint32_t slot = tally->slots[hashes[i] & (tally->capacity - 1)];

		if (slot)
			__builtin_prefetch(tally_at(tally, slot - 1), 1);
	}
	for (size_t i = 0; i < count; i++)
		rows[i] = find_row(tally, &keys[i * tally->keys], hashes[i]);
	return true;
}

void tally_keep(struct tally *tally, const bool *is_kept)
{
	size_t count = 0;

	for (size_t i = 0; i < tally->count; i++)
		if (is_kept[i])
			memmove(tally_at(tally, count++), tally_at(tally, i), tally->width * sizeof(int64_t));
	tally->count = count;
	if (tally->slots)
		memset(tally->slots, 0, tally->capacity * sizeof(*tally->slots));
	fill_slots(tally);
}

void tally_free(struct tally *tally)
{
	vector_free(&tally->words);
	free(tally->slots);
	*tally = (struct tally){ .keys = tally->keys, .width = tally->width };
}
