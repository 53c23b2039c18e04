/*
 * The functions of one ELF object as disjoint address ranges, sorted.
 */
#ifndef QUERYPROF_SYMBOL_SYMBOL_TABLE_H
#define QUERYPROF_SYMBOL_SYMBOL_TABLE_H

#include <stdint.h>

#include "symbol/elf_image.h"

/* Immutable once made: any number of threads may look up at once. */
struct symbol_table;

/* Reads the functions of `image` and, when it is not NULL, of its separate debug
 * file. A stripped image without debug file also gets the names that its own code
 * proves (entry.c). NULL only when there is no memory; an object without symbols
 * gives an empty table. */
struct symbol_table *symbol_table_create(const struct elf_image *image, const struct elf_image *debug);

/* The functions that only an archive beside the image, which lies at `path`, proves
 * (archive.h); NULL as above. */
struct symbol_table *symbol_table_create_archived(const struct elf_image *image, const char *path);

void symbol_table_destroy(struct symbol_table *table);

/* Name of the function whose extent holds the address; lives as long as the
 * table. NULL when none does. */
const char *symbol_table_find(const struct symbol_table *table, uint64_t address);

/* Calls `each` for every range, by address; one function may have several. */
void symbol_table_each(const struct symbol_table *table,
                       void (*each)(void *context, const char *name, uint64_t start, uint64_t end),
                       void *context);

/* --- while a table is being made (symbol_table.c, plt.c, entry.c) ------------ */

struct symbol_collector;

/* Adds a range with a name of its own; false when there is no memory. */
bool symbol_collector_add(struct symbol_collector *collector, uint64_t start, uint64_t size, const char *name,
                          const char *suffix);

/* The name of the function that starts there, of those that were collected; valid until
 * the next one is added. NULL when there is none. */
const char *symbol_collector_find(const struct symbol_collector *collector, uint64_t start);

/* Stubs of the procedure linkage table, as "name@plt", for an image whose functions
 * have been collected. False: no memory. */
bool plt_collect(const struct elf_image *image, struct symbol_collector *collector);

/* Whether the dynamic linker puts the address of the function `name` there. */
bool plt_slot_is(const struct elf_image *image, uint64_t address, const char *name);

/* _start and main of a program, where its code proves them. False: no memory. */
bool entry_collect(const struct elf_image *image, struct symbol_collector *collector);

#endif
