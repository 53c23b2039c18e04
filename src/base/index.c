/* SPDX-License-Identifier: Apache-2.0 */
#include "base/index.h"

struct numbered {
	struct hash key;
	uint32_t number;
};

uint32_t index_find(const struct index *index, struct hash key)
{
	const struct numbered *known = hash_table_find(&index->table, key);

	return known ? known->number : INDEX_NONE;
}

uint32_t index_add(struct index *index, struct hash key)
{
	uint32_t number = (uint32_t)index->table.count;
	struct numbered *added = NULL;

	index->table.entry_size = sizeof(*added);
	index->table.limit = SIZE_MAX;
	if (number != INDEX_NONE)
		added = hash_table_add(&index->table, key);
	if (!added)
		return INDEX_NONE;
	added->number = number;
	return number;
}

void index_free(struct index *index)
{
	hash_table_free(&index->table);
}
