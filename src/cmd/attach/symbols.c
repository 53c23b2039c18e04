/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/symbols.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* More than any object has; a larger table is not trusted. */
#define TABLE_MAX (64u << 20)
#define SEGMENTS_MAX 64
#define ENTRIES_MAX 256

static bool read_file(const struct object_memory *memory, uint64_t address, void *to, size_t size)
{
	const Elf64_Ehdr *head = memory->file;
	const Elf64_Phdr *segments = (const Elf64_Phdr *)((const char *)memory->file + head->e_phoff);

	for (int i = 0; i < head->e_phnum; i++) {
		const Elf64_Phdr *segment = &segments[i];

		if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_filesz &&
		    size <= segment->p_filesz - (address - segment->p_vaddr) &&
		    segment->p_offset + (address - segment->p_vaddr) + size <= memory->size) {
			memcpy(to,
			       (const char *)memory->file + segment->p_offset + (address - segment->p_vaddr),
			       size);
			return true;
		}
	}
	return false;
}

bool object_read(const struct object_memory *memory, uint64_t address, void *to, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)(uintptr_t)address, size };

	if (!memory->process)
		return read_file(memory, address, to, size);
	return process_vm_readv(memory->process, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* One more than the last symbol of the hash table. */
static size_t count_symbols(const struct object_memory *memory, uint64_t hashes)
{
	uint32_t head[4], last = 0, word = 0;
	uint64_t buckets, chains;

	if (!object_read(memory, hashes, head, sizeof(head)) || head[0] > TABLE_MAX || head[2] > TABLE_MAX)
		return 0;
	buckets = hashes + sizeof(head) + 8ull * head[2];
	chains = buckets + 4ull * head[0];
	for (uint32_t i = 0; i < head[0]; i++) {
		if (!object_read(memory, buckets + 4ull * i, &word, sizeof(word)))
			return 0;
		last = word > last ? word : last;
	}
	if (last < head[1])
		return head[1];
	do
		if (last > TABLE_MAX ||
		    !object_read(memory, chains + 4ull * (last - head[1]), &word, sizeof(word)))
			return 0;
	while (last++, !(word & 1));
	return last;
}

static void *read_table(const struct object_memory *memory, uint64_t address, size_t size)
{
	void *table = size && size <= TABLE_MAX ? malloc(size + 1) : NULL;

	if (table && object_read(memory, address, table, size)) {
		((char *)table)[size] = '\0';
		return table;
	}
	free(table);
	return NULL;
}

static bool read_dynamic(struct symbols *symbols, const struct object_memory *memory, uint64_t base,
                         uint64_t at)
{
	uint64_t hashes = 0, table = 0, strings = 0;
	Elf64_Dyn entry = { .d_tag = DT_NULL };

	for (int i = 0;
	     i < ENTRIES_MAX && object_read(memory, at, &entry, sizeof(entry)) && entry.d_tag != DT_NULL;
	     i++, at += sizeof(entry)) {
		/* The loader has relocated these pointers, except those of its own objects. */
		uint64_t pointer =
			entry.d_un.d_ptr < base ? entry.d_un.d_ptr + symbols->bias : entry.d_un.d_ptr;

		switch (entry.d_tag) {
		case DT_GNU_HASH: hashes = pointer; break;
		case DT_SYMTAB: table = pointer; break;
		case DT_STRTAB: strings = pointer; break;
		case DT_STRSZ: symbols->strings_size = entry.d_un.d_val; break;
		}
	}
	if (!hashes || !table || !strings || !(symbols->count = count_symbols(memory, hashes)))
		return false;
	symbols->symbols = read_table(memory, table, symbols->count * sizeof(*symbols->symbols));
	symbols->strings = read_table(memory, strings, symbols->strings_size);
	return symbols->symbols && symbols->strings;
}

/* Data of the object's program headers. */
static bool read_segments(const struct object_memory *memory, uint64_t base, uint64_t *bias,
                          uint64_t *dynamic)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	uint64_t first = UINT64_MAX;
	Elf64_Ehdr head;

	*dynamic = 0;
	if (!object_read(memory, base, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64 ||
	    head.e_phnum > SEGMENTS_MAX ||
	    !object_read(memory, base + head.e_phoff, segments, head.e_phnum * sizeof(*segments)))
		return false;
	for (int i = 0; i < head.e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr < first)
			first = segments[i].p_vaddr & ~(uint64_t)4095;
		if (segments[i].p_type == PT_DYNAMIC)
			*dynamic = segments[i].p_vaddr;
	}
	*bias = base - first;
	return true;
}

bool symbols_find_bias(const struct object_memory *memory, uint64_t base, uint64_t *bias)
{
	uint64_t dynamic;

	return read_segments(memory, base, bias, &dynamic);
}

bool symbols_read(struct symbols *symbols, const struct object_memory *memory, uint64_t base)
{
	uint64_t dynamic;

	*symbols = (struct symbols){ 0 };
	return read_segments(memory, base, &symbols->bias, &dynamic) && dynamic &&
	       read_dynamic(symbols, memory, base, dynamic + symbols->bias);
}

void symbols_free(struct symbols *symbols)
{
	free(symbols->symbols);
	free(symbols->strings);
	*symbols = (struct symbols){ 0 };
}

static const char *name_of(const struct symbols *symbols, const Elf64_Sym *symbol)
{
	return symbol->st_name < symbols->strings_size ? symbols->strings + symbol->st_name : "";
}

uint64_t symbols_find(const struct symbols *symbols, const char *name)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (symbols->symbols[i].st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(symbols->symbols[i].st_info) != STT_TLS &&
		    strcmp(name_of(symbols, &symbols->symbols[i]), name) == 0)
			return symbols->symbols[i].st_value + symbols->bias;
	return 0;
}

const char *symbols_name(const struct symbols *symbols, uint64_t address)
{
	for (size_t i = 0; i < symbols->count; i++) {
		const Elf64_Sym *symbol = &symbols->symbols[i];

		if (symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
		    address - symbols->bias - symbol->st_value < symbol->st_size)
			return name_of(symbols, symbol);
	}
	return NULL;
}
