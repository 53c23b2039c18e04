/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one ELF object as disjoint address ranges, sorted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbol/extent.h"

struct symbol_range {
	uint64_t start;
	uint32_t size;
	uint32_t name; /* offset in the table's names */
};

/* Made by symbol_table_builder_finish(), and immutable since: any number of threads may
 * look up at once. */
struct symbol_table {
	char *names;
	size_t count;
	struct symbol_range ranges[];
};

void symbol_table_destroy(struct symbol_table *table); /* NULL: does nothing */

/* Name of the function whose extent holds the address; lives as long as the
 * table. NULL when none does. Cuts the extent. */
const char *symbol_table_find(const struct symbol_table *table, uint64_t address, struct extent *extent);

/* Calls `each` for every range, by address; one function may have several. */
void symbol_table_each(const struct symbol_table *table,
                       void (*each)(void *context, const char *name, uint64_t start, uint64_t end),
                       void *context);
