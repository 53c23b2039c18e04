/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loaded_symbol.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#define RELOCATION_JUMP R_X86_64_JUMP_SLOT
#define RELOCATION_GOT R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define RELOCATION_JUMP R_AARCH64_JUMP_SLOT
#define RELOCATION_GOT R_AARCH64_GLOB_DAT
#else
#error "queryprof supports x86-64 and aarch64"
#endif

void loaded_tables_read(const struct dl_phdr_info *info, struct loaded_tables *tables)
{
	const ElfW(Dyn) *entry = NULL;

	*tables = (struct loaded_tables){ 0 };
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		/* Relative while the object is still being mapped. */
		uintptr_t at = entry->d_un.d_ptr;
		const void *pointer = (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);

		switch (entry->d_tag) {
		case DT_GNU_HASH: tables->hash = pointer; break;
		case DT_HASH: tables->sysv_hash = pointer; break;
		case DT_SYMTAB: tables->symbols = pointer; break;
		case DT_STRTAB: tables->strings = pointer; break;
		case DT_STRSZ: tables->strings_size = entry->d_un.d_val; break;
		case DT_JMPREL: tables->relocations[0] = pointer; break;
		case DT_PLTRELSZ: tables->relocations_size[0] = entry->d_un.d_val; break;
		case DT_RELA: tables->relocations[1] = pointer; break;
		case DT_RELASZ: tables->relocations_size[1] = entry->d_un.d_val; break;
		}
	}
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

/* Programs have symbols with an address of their own for functions of other objects. */
static bool is_it(const struct loaded_tables *in, const ElfW(Sym) *symbol, const char *name)
{
	return symbol->st_shndx != SHN_UNDEF && strcmp(in->strings + symbol->st_name, name) == 0;
}

/* The table's second word is the number of symbols. The few objects without any other table are small. */
static const ElfW(Sym) *find_one_by_one(const struct loaded_tables *in, const char *name)
{
	for (uint32_t i = 1; i < in->sysv_hash[1]; i++)
		if (is_it(in, &in->symbols[i], name))
			return &in->symbols[i];
	return NULL;
}

/* The table: a header of four words, a Bloom filter, the buckets' first symbols, and the hashes in
 * the order of the symbols, the last of a bucket with its lowest bit set. */
static const ElfW(Sym) *find_symbol(const struct loaded_tables *in, const char *name)
{
	const uint32_t buckets = in->hash[0], first = in->hash[1], filters = in->hash[2];
	const ElfW(Addr) *filter = (const ElfW(Addr) *)(in->hash + 4);
	const uint32_t *bucket = (const uint32_t *)(filter + filters);
	const uint32_t *hashes = bucket + buckets;
	const uint32_t hash = hash_name(name);
	const unsigned bits = sizeof(*filter) * 8;
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

		if ((found | 1) == (hash | 1) && is_it(in, &in->symbols[i], name))
			return &in->symbols[i];
		if (found & 1)
			return NULL;
	}
}

const ElfW(Sym) *loaded_symbol_find(const struct dl_phdr_info *info, const char *name, unsigned type)
{
	const ElfW(Sym) *symbol;
	struct loaded_tables tables;

	loaded_tables_read(info, &tables);
	if ((!tables.hash && !tables.sysv_hash) || !tables.symbols || !tables.strings)
		return NULL;
	symbol = tables.hash ? find_symbol(&tables, name) : find_one_by_one(&tables, name);
	return symbol && ELF64_ST_TYPE(symbol->st_info) == type ? symbol : NULL;
}

/* One after the last symbol in the hash table: the last one of the last bucket. */
static uint32_t end_of_hashed(const struct loaded_tables *in)
{
	const uint32_t buckets = in->hash[0], first = in->hash[1];
	const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(in->hash + 4) + in->hash[2]);
	uint32_t last = 0;

	for (uint32_t i = 0; i < buckets; i++)
		last = bucket[i] > last ? bucket[i] : last;
	if (last < first)
		return 0;
	while (!(bucket[buckets + last - first] & 1))
		last++;
	return last + 1;
}

bool loaded_functions_all(const struct dl_phdr_info *info, bool (*is)(const char *name))
{
	struct loaded_tables tables;
	uint32_t end = 0;

	loaded_tables_read(info, &tables);
	if (tables.symbols && tables.strings)
		end = tables.hash ? end_of_hashed(&tables) : tables.sysv_hash ? tables.sysv_hash[1] : 0;
	for (uint32_t i = tables.hash ? tables.hash[1] : 1; i < end; i++) {
		const ElfW(Sym) *symbol = &tables.symbols[i];

		if (symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
		    !is(tables.strings + symbol->st_name))
			return false;
	}
	return true;
}

void **loaded_function_slot(const struct dl_phdr_info *info, const char *name, size_t number)
{
	struct loaded_tables tables;

	loaded_tables_read(info, &tables);
	for (int t = 0; t < 2 && tables.symbols && tables.strings; t++)
		for (size_t i = 0;
		     tables.relocations[t] && i < tables.relocations_size[t] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *relocation = &tables.relocations[t][i];
			const unsigned long type = ELF64_R_TYPE(relocation->r_info);

			if ((type == RELOCATION_JUMP || type == RELOCATION_GOT) &&
			    !strcmp(tables.strings + tables.symbols[ELF64_R_SYM(relocation->r_info)].st_name,
			            name) &&
			    !number--)
				return (void **)(info->dlpi_addr + relocation->r_offset);
		}
	return NULL;
}
