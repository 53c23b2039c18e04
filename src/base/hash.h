/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashing of short byte strings and word arrays to 128 bits, for the tables of rows that are already
 * in the file.
 *
 * With 128 bits, equal hashes can be treated as equal keys: with a million keys the probability of
 * one mistake is about 10^-27, and no copy of a stack or a text must be kept in memory. An attacker
 * gains nothing by making two stacks collide, so a keyless hash suffices. The file stores the first
 * half of some hashes, as a look-up key that is always checked against the whole value.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Both words zero is never a hash: tables mark empty places with it. */
struct hash {
	uint64_t first, second;
};

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void hash_word(struct hash *hash, uint64_t word)
{
	/* Two chains that do not wait for each other. A product with zero loses the earlier input,
	 * so the state enters on both sides. */
	hash->first = hash_fold(hash->first ^ word, 0x9e3779b97f4a7c15ull) + (hash->first << 1);
	hash->second = hash_fold(hash->second + word, 0xd6e8feb86659fd93ull) ^ (hash->second >> 3);
}

static inline struct hash hash_begin(uint64_t seed)
{
	return (struct hash){ seed ^ 0x243f6a8885a308d3ull, seed + 0x13198a2e03707344ull };
}

static inline struct hash hash_end(struct hash hash)
{
	hash.first = hash_fold(hash.first ^ 0xa0761d6478bd642full, 0xe7037ed1a0b428dbull);
	hash.second = hash_fold(hash.second ^ 0x8ebc6af09c88c6e3ull, 0x589965cc75374cc3ull) | 1;
	return hash;
}

static inline struct hash hash_words(const uint64_t *words, size_t count)
{
	struct hash hash = hash_begin(count);

	for (size_t i = 0; i < count; i++)
		hash_word(&hash, words[i]);
	return hash_end(hash);
}

/* 24 bits of a pointer's, for tables whose size is a power of two. */
static inline uint32_t hash_pointer(const void *pointer)
{
	return (uint32_t)((uintptr_t)pointer * 0x9e3779b97f4a7c15ull >> 40);
}

static inline struct hash hash_bytes(const void *bytes, size_t size)
{
	struct hash hash = hash_begin(size);
	const char *at = bytes;
	uint64_t word;

	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash_word(&hash, word);
	}
	word = 0;
	memcpy(&word, at, size);
	hash_word(&hash, word);
	return hash_end(hash);
}
