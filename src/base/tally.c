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

static uint32_t *find_place(const struct tally *tally, const int64_t *key)
{
	const size_t mask = tally->capacity - 1;
	size_t at = hash_words((const uint64_t *)key, tally->keys).first & mask;

	while (tally->places[at] && !is_equal(tally_at(tally, tally->places[at] - 1), key, tally->keys))
		at = (at + 1) & mask;
	return &tally->places[at];
}

static bool grow(struct tally *tally)
{
	const size_t capacity = tally->capacity ? 2 * tally->capacity : 1024;
	uint32_t *places = capacity <= UINT32_MAX ? calloc(capacity, sizeof(*places)) : NULL;

	if (!places)
		return false;
	free(tally->places);
	tally->places = places;
	tally->capacity = capacity;
	for (size_t i = 0; i < tally->count; i++)
		*find_place(tally, tally_at(tally, i)) = (uint32_t)i + 1;
	return true;
}

size_t tally_row(struct tally *tally, const int64_t *key)
{
	if (2 * tally->count >= tally->capacity && !grow(tally))
		return TALLY_NONE;
	uint32_t *place = find_place(tally, key);
	if (!*place) {
		if (!vector_reserve(&tally->words, (tally->count + 1) * tally->width))
			return TALLY_NONE;
		int64_t *words = tally_at(tally, tally->count);
		memset(words, 0, tally->width * sizeof(*words));
		memcpy(words, key, tally->keys * sizeof(*key));
		*place = (uint32_t)++tally->count;
	}
	return *place - 1;
}

void tally_free(struct tally *tally)
{
	vector_free(&tally->words);
	free(tally->places);
	*tally = (struct tally){ .keys = tally->keys, .width = tally->width };
}
