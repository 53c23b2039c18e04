/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks the name up in each object's own table of symbols, as the loader does. Using
 * the loader's dlsym() would take a reference to every object, for every object
 * that a program loads.
 */
#include "watch/library.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct symbols {
	const uint32_t *hash; /* DT_GNU_HASH */
	const ElfW(Sym) *symbols;
	const char *strings;
};

static bool read_symbols(const struct dl_phdr_info *info, struct symbols *symbols)
{
	const ElfW(Dyn) *entry = NULL;

	*symbols = (struct symbols){ 0 };
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		/* Relative while the object is still being mapped. */
		uintptr_t at = entry->d_un.d_ptr;
		const void *pointer = (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);

		switch (entry->d_tag) {
		case DT_GNU_HASH: symbols->hash = pointer; break;
		case DT_SYMTAB: symbols->symbols = pointer; break;
		case DT_STRTAB: symbols->strings = pointer; break;
		}
	}
	return symbols->hash && symbols->symbols && symbols->strings;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

/* The table: a header of four words, a Bloom filter, the buckets' first symbols, and
 * the hashes in the order of the symbols, the last of a bucket with its lowest bit
 * set. It holds defined symbols only. */
static const ElfW(Sym) *find_symbol(const struct symbols *in, const char *name)
{
	const uint32_t buckets = in->hash[0], first = in->hash[1], filters = in->hash[2];
	const ElfW(Addr) *filter = (const ElfW(Addr) *)(in->hash + 4);
	const uint32_t *bucket = (const uint32_t *)(filter + filters);
	const uint32_t *hashes = bucket + buckets;
	const uint32_t hash = hash_name(name);
	const unsigned bits = sizeof *filter * 8;
	const ElfW(Addr) wanted = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1
	                                                                 << (hash >> in->hash[3]) % bits;
	uint32_t i;

	if (!buckets || !filters || (filter[hash / bits % filters] & wanted) != wanted)
		return NULL;
	i = bucket[hash % buckets];
	if (i < first)
		return NULL;
	for (;; i++) {
		uint32_t found = hashes[i - first];

		if ((found | 1) == (hash | 1) && !strcmp(in->strings + in->symbols[i].st_name, name))
			return &in->symbols[i];
		if (found & 1)
			return NULL;
	}
}

static const ElfW(Sym) *find_function(const struct dl_phdr_info *info, const char *name)
{
	const ElfW(Sym) *symbol;
	struct symbols symbols;

	if (!read_symbols(info, &symbols))
		return NULL;
	symbol = find_symbol(&symbols, name);
	return symbol && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC ? symbol : NULL;
}

bool library_object_defines(const struct dl_phdr_info *info, const char *function)
{
	return find_function(info, function) != NULL;
}

struct look {
	struct library_search *search;
	struct sqlite_library *library;
	size_t at;
};

static int see_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct look *look = context;
	struct sqlite_library *library = look->library;
	const ElfW(Sym) *symbol;

	(void)size;
	if (look->at == 0 && info->dlpi_subs != look->search->gone)
		*look->search = (struct library_search){ 0, info->dlpi_subs };
	if (look->at++ < look->search->seen)
		return 0;
	look->search->seen++;
	if (!info->dlpi_name || !strchr(info->dlpi_name, '/') ||
	    !(symbol = find_function(info, "sqlite3_step")))
		return 0;
	library->step = (const void *)(info->dlpi_addr + symbol->st_value);
	snprintf(library->path, sizeof library->path, "%s", info->dlpi_name);
	return 1;
}

bool library_find(struct library_search *search, struct sqlite_library *library)
{
	struct look look = { .search = search, .library = library };

	return dl_iterate_phdr(see_object, &look) == 1;
}
