/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing with linear probing, at most half full. Entries are never deleted individually, so
 * there are no tombstones.
 */
#include "base/hash_table.h"

#include <stdlib.h>

static struct hash *entry_at(const struct hash_table *table, size_t index)
{
	return (struct hash *)(void *)(table->entries + index * table->entry_size);
}

static int is_empty(const struct hash *entry)
{
	return !entry->first && !entry->second;
}

/* The key's entry, or the empty place where it belongs. */
static struct hash *find_slot(const struct hash_table *table, struct hash key)
{
	size_t mask = table->capacity - 1;

	for (size_t i = key.first & mask;; i = (i + 1) & mask) {
		struct hash *entry = entry_at(table, i);

		if (is_empty(entry) || (entry->first == key.first && entry->second == key.second))
			return entry;
	}
}

void *hash_table_find(const struct hash_table *table, struct hash key)
{
	struct hash *entry;

	if (!table->capacity)
		return NULL;
	entry = find_slot(table, key);
	return is_empty(entry) ? NULL : entry;
}

static int grow(struct hash_table *table)
{
	struct hash_table larger = *table;

	larger.capacity = table->capacity ? table->capacity * 2 : 64;
	larger.entries = calloc(larger.capacity, larger.entry_size);
	if (!larger.entries)
		return 0;
	for (size_t i = 0; i < table->capacity; i++) {
		struct hash *entry = entry_at(table, i);

		if (!is_empty(entry))
			memcpy(find_slot(&larger, *entry), entry, table->entry_size);
	}
	free(table->entries);
	*table = larger;
	return 1;
}

void *hash_table_add(struct hash_table *table, struct hash key)
{
	struct hash *entry;

	if (table->count >= table->limit)
		hash_table_clear(table);
	if (table->count * 2 >= table->capacity && !grow(table))
		return NULL;
	entry = find_slot(table, key);
	*entry = key;
	table->count++;
	return entry;
}

void hash_table_clear(struct hash_table *table)
{
	if (table->count)
		memset(table->entries, 0, table->capacity * table->entry_size);
	table->count = 0;
}

void hash_table_free(struct hash_table *table)
{
	free(table->entries);
	table->entries = NULL;
	table->capacity = table->count = 0;
}

void hash_table_each(struct hash_table *table, void (*each)(void *context, void *entry), void *context)
{
	for (size_t i = 0; i < table->capacity; i++) {
		struct hash *entry = entry_at(table, i);

		if (!is_empty(entry))
			each(context, entry);
	}
}
