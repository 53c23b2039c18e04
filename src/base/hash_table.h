/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from 128-bit hashes to small entries of one size. Entries are not removed
 * one by one. A table with a limit is a memory of look-ups: when it is full, adding an
 * entry clears it first.
 */
#pragma once

#include <stddef.h>

#include "base/hash.h"

/* Entries begin with their struct hash. */
struct hash_table {
	size_t entry_size;
	size_t limit; /* of entries; SIZE_MAX: none */
	size_t capacity, count;
	char *entries;
};

#define HASH_TABLE_OF(type, most)                                                                            \
	{                                                                                                    \
		.entry_size = sizeof(type), .limit = (most)                                                  \
	}

/* The entry, NULL if there is none. */
void *hash_table_find(const struct hash_table *table, struct hash key);

/* A new entry, zero except its key, which must not be in the table. NULL: out of memory.
 * Invalidates pointers to other entries. */
void *hash_table_add(struct hash_table *table, struct hash key);

void hash_table_clear(struct hash_table *table); /* keeps the memory */
void hash_table_free(struct hash_table *table);

/* Calls for each entry. */
void hash_table_each(struct hash_table *table, void (*each)(void *context, void *entry), void *context);
