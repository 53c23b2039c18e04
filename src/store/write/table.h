/*
 * A hash table from 128-bit hashes to small fixed-size entries: what the writer
 * remembers of the file (stack → row, query → row, …). Only a memory of look-ups:
 * it may be cleared at any time, and is, when it has grown too large.
 */
#ifndef QUERYPROF_STORE_WRITE_TABLE_H
#define QUERYPROF_STORE_WRITE_TABLE_H

#include <stddef.h>

#include "base/hash.h"

/* Entries begin with their struct hash. */
struct table {
	size_t entry_size;
	size_t limit; /* of entries; adding one more clears the table first */
	size_t capacity, count;
	char *entries;
};

#define TABLE_OF(type, most)                                                                                 \
	{                                                                                                    \
		.entry_size = sizeof(type), .limit = (most)                                                  \
	}

/* The entry, NULL when there is none. */
void *table_find(const struct table *table, struct hash key);

/* A new entry, zero but for its key, which must not be in the table. NULL: no
 * memory. Pointers to other entries are no longer valid. */
void *table_add(struct table *table, struct hash key);

void table_clear(struct table *table); /* keeps the memory */
void table_free(struct table *table);

/* Calls for each entry. */
void table_each(struct table *table, void (*each)(void *context, void *entry), void *context);

#endif
