/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols that a loaded object defines for others, looked up in its own table, as the loader does.
 * dlsym() would wait while another thread is inside dlopen(), and takes a reference to the object.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An object's own tables; NULL and 0 if it has none. */
struct loaded_tables {
	const uint32_t *hash;      /* DT_GNU_HASH */
	const uint32_t *sysv_hash; /* DT_HASH */
	const ElfW(Sym) *symbols;
	const char *strings;
	size_t strings_size;
	const ElfW(Rela) *relocations[2]; /* of the PLT, and all others */
	size_t relocations_size[2];       /* in bytes */
};

/* Valid as long as the object stays loaded, as it does in a callback of dl_iterate_phdr(). */
void loaded_tables_read(const struct dl_phdr_info *info, struct loaded_tables *tables);

/* NULL: the object defines none of this name and type (STT_...). Only in a callback of
 * dl_iterate_phdr(), during which the object stays loaded. */
const ElfW(Sym) *loaded_symbol_find(const struct dl_phdr_info *info, const char *name, unsigned type);

/* Whether `is` holds for the name of each function that the object defines for others. */
bool loaded_functions_all(const struct dl_phdr_info *info, bool (*is)(const char *name));

/* The slots in the object's import table for calls of the function, by their number from 0; NULL: it has no
 * more. */
void **loaded_function_slot(const struct dl_phdr_info *info, const char *name, size_t number);
