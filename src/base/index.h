/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for keys, from 0 in the order in which they come: a hash table of numbers over
 * an array that the caller keeps.
 *
 *	struct sum *sum = index_item(&sums->index, key, &sums->list);
 *	if (sum)
 *		sum->weight += weight;   // 0 at first
 */
#pragma once

#include "base/hash_table.h"
#include "base/vector.h"

#define INDEX_NONE UINT32_MAX

/* Start with a zeroed struct. */
struct index {
	struct hash_table table;
};

/* The key's number, INDEX_NONE if it has none. */
uint32_t index_find(const struct index *index, struct hash key);

/* Gives a key without a number the next one. INDEX_NONE: out of memory. */
uint32_t index_add(struct index *index, struct hash key);

/* The key's item in the vector, which has one for each number: a zeroed one if the key is new.
 * NULL: out of memory. */
#define index_item(index, key, vector)                                                                       \
	({                                                                                                   \
		__typeof__(vector) of_ = (vector);                                                           \
		const struct hash key_ = (key);                                                              \
		uint32_t number_ = index_find((index), key_);                                                \
		if (number_ == INDEX_NONE && vector_reserve(of_, of_->count + 1) &&                          \
		    (number_ = index_add((index), key_)) != INDEX_NONE)                                      \
			vector_add(of_); /* has room */                                                      \
		number_ == INDEX_NONE ? NULL : &of_->items[number_];                                         \
	})

void index_free(struct index *index);
