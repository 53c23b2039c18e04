/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups in a finished table. See the header.
 */
#include "symbol/symbol_table.h"

#include <stdlib.h>

#include "base/search.h"

void symbol_table_destroy(struct symbol_table *table)
{
	if (!table)
		return;
	free(table->names);
	free(table);
}

const char *symbol_table_find(const struct symbol_table *table, uint64_t address, struct extent *extent)
{
	size_t before = SEARCH_COUNT(table->count, i, table->ranges[i].start <= address);
	if (before < table->count)
		extent_cut(extent, address, table->ranges[before].start);
	if (before == 0)
		return NULL;
	const struct symbol_range *range = &table->ranges[before - 1];
	extent_cut(extent, address, range->start);
	extent_cut(extent, address, range->start + range->size);
	return address - range->start < range->size ? table->names + range->name : NULL;
}

void symbol_table_each(const struct symbol_table *table,
                       void (*each)(void *context, const char *name, uint64_t start, uint64_t end),
                       void *context)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct symbol_range *range = &table->ranges[i];
		each(context, table->names + range->name, range->start, range->start + range->size);
	}
}
