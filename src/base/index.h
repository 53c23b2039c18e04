/*
 * Numbers for keys, from 0 in the order in which they come: a hash table of numbers over
 * an array that the caller keeps.
 *
 *	uint32_t number = index_find(&sums->index, key);
 *	if (number == INDEX_NONE && vector_reserve(&sums->list, sums->list.count + 1) &&
 *	    (number = index_add(&sums->index, key)) != INDEX_NONE)
 *		vector_add(&sums->list)->name = name;   // has room, so it cannot fail
 */
#ifndef QUERYPROF_BASE_INDEX_H
#define QUERYPROF_BASE_INDEX_H

#include "base/hash_table.h"

#define INDEX_NONE UINT32_MAX

/* Start with a zeroed struct. */
struct index {
	struct hash_table table;
};

/* The key's number, INDEX_NONE when it has none. */
uint32_t index_find(const struct index *index, struct hash key);

/* Gives a key that has no number the next one. INDEX_NONE: no memory. */
uint32_t index_add(struct index *index, struct hash key);

void index_free(struct index *index);

#endif
