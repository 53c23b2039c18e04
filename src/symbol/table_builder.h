/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the functions of one object from several sources and makes one table of
 * them. The rules by which names and extents are chosen are in table_builder.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "symbol/elf_image.h"

struct symbol_table;
struct candidate;

/* Starts as { 0 }. One thread at a time. */
struct symbol_table_builder {
	VECTOR(struct candidate) candidates;
	VECTOR(char) names;  /* each ends in a zero */
	uint64_t file_bytes; /* of the images whose sections were added */
};

/* Adds the range of one function; its name is `name` with `suffix` behind it. False:
 * no memory. */
bool symbol_table_builder_add(struct symbol_table_builder *builder, uint64_t start, uint64_t size,
                              const char *name, const char *suffix);

/* Adds the functions of the image's section of that type (SHT_SYMTAB, SHT_DYNSYM), if it
 * has one. False: no memory, or more names than the file can have. */
bool symbol_table_builder_add_section(struct symbol_table_builder *builder, const struct elf_image *image,
                                      uint32_t type);

/* The name of the function that starts there, of those that were collected; valid until
 * the next one is added. NULL when there is none. */
const char *symbol_table_builder_find(const struct symbol_table_builder *builder, uint64_t start);

/* The table of what was collected, also when that is nothing; NULL: no memory. Frees what
 * the collector holds. */
struct symbol_table *symbol_table_builder_finish(struct symbol_table_builder *builder);

void symbol_table_builder_free(struct symbol_table_builder *builder);
