/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function covers an address.
 *
 * A symbol covers its own size and no more: in a stripped library the space between two
 * exported functions belongs to static ones whose names are gone, and the neighbour's name
 * would be wrong.
 *
 * Symbols of size 0 (assembly without .size) name their first byte. They reach
 * further, up to the next symbol or the end of their section, only when the table
 * still has its local functions, so that nothing nameless can lie between, and
 * only where no sized symbol claims the address.
 *
 * If a range has several names, the first in this order is shown, as linkers and
 * profilers have long done: global, local, weak; fewer leading underscores;
 * shorter; first by byte value. Where ranges overlap, the one that starts last
 * has the address (the inner one when they nest).
 */
#include "symbol/table_builder.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/symbol_table.h"

enum reach {
	REACH_SIZE,    /* covers [start, end) */
	REACH_NEXT,    /* size unknown: to the next symbol, at most to `end` */
	REACH_NOTHING, /* only ends the reach of the one before */
};

struct candidate {
	uint64_t start, end;
	uint32_t name; /* offset in the names */
	uint8_t reach;
	uint8_t rank;
};

/* --- collecting -------------------------------------------------------------- */

/* Of names that no symbol table has: from an archive, and of stubs. */
#define NAMES_BESIDE (UINT64_C(64) << 20)

static bool add_names(struct symbol_table_builder *builder, const char *bytes, size_t size)
{
	size_t before = builder->names.count;
	/* All symbols may have one long name, which is in the file once. Then its copies would fill the
	 * memory; a name that is shared in earnest is shorter than its symbols. */
	if (before + size > builder->file_bytes + NAMES_BESIDE || size > UINT32_MAX - before ||
	    !vector_reserve(&builder->names, before + size))
		return false;
	memcpy(builder->names.items + before, bytes, size);
	builder->names.count += size;
	return true;
}

bool symbol_table_builder_add(struct symbol_table_builder *builder, uint64_t start, uint64_t size,
                              const char *name, const char *suffix)
{
	size_t at = builder->names.count;
	return add_names(builder, name, strlen(name)) && add_names(builder, suffix, strlen(suffix) + 1) &&
	       vector_push(&builder->candidates, (struct candidate){ .start = start,
	                                                             .end = start + size,
	                                                             .name = (uint32_t)at,
	                                                             .reach = REACH_SIZE });
}

static uint8_t rank_of(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_LOCAL: return 1;
	case STB_WEAK: return 2;
	default: return 0;
	}
}

/* Whether the symbol stands for code, and how far it reaches. False: ignore it. */
static bool judge(const struct elf_image *image, const Elf64_Sym *symbol, const char *name, bool is_complete,
                  struct candidate *candidate)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	bool is_local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= image->section_count)
		return false;
	const Elf64_Shdr *section = &image->sections[symbol->st_shndx];
	uint64_t start = symbol->st_value, room = start - section->sh_addr;
	if (!(section->sh_flags & SHF_EXECINSTR) || start < section->sh_addr || room >= section->sh_size ||
	    symbol->st_size > UINT32_MAX)
		return false;

	*candidate = (struct candidate){ .start = start, .rank = rank_of(symbol) };
	/* Labels inside assembly: they name no function, but one may end there. */
	if ((type == STT_NOTYPE && is_local) || name[0] == 0 || name[0] == '.' || name[0] == '$') {
		candidate->end = start;
		candidate->reach = REACH_NOTHING;
		return true;
	}
	if (symbol->st_size > 0) {
		candidate->end =
			start + (symbol->st_size < section->sh_size - room ? symbol->st_size
		                                                           : section->sh_size - room);
		candidate->reach = REACH_SIZE;
	} else {
		candidate->end = is_complete ? section->sh_addr + section->sh_size : start + 1;
		candidate->reach = REACH_NEXT;
	}
	return candidate->end > start;
}

static bool has_local_functions(const struct libdw *libdw, Elf_Data *symbols)
{
	size_t count = symbols->d_size / sizeof(Elf64_Sym);
	GElf_Sym symbol;
	for (size_t i = 0; i < count && libdw->gelf_getsym(symbols, (int)i, &symbol); i++)
		if (GELF_ST_BIND(symbol.st_info) == STB_LOCAL && GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
			return true;
	return false;
}

bool symbol_table_builder_add_section(struct symbol_table_builder *builder, const struct elf_image *image,
                                      uint32_t type)
{
	const struct libdw *libdw = image->libdw;
	const Elf64_Shdr *section = elf_image_section_of_type(image, type);
	Elf_Data *symbols = section ? elf_image_data(image, section) : NULL;
	bool is_complete = symbols && has_local_functions(libdw, symbols);
	size_t count = symbols ? symbols->d_size / sizeof(Elf64_Sym) : 0;
	GElf_Sym symbol;
	builder->file_bytes += image->size;
	for (size_t i = 0; i < count && libdw->gelf_getsym(symbols, (int)i, &symbol); i++) {
		const char *name = libdw->elf_strptr(image->elf, section->sh_link, symbol.st_name);
		struct candidate candidate;
		if (!name || !judge(image, &symbol, name, is_complete, &candidate))
			continue;
		/* Newer linkers append the version: "name@@VERSION". */
		size_t length = name[0] ? 1 + strcspn(name + 1, "@") : 0;
		candidate.name = (uint32_t)builder->names.count;
		if (!add_names(builder, name, length) || !add_names(builder, "", 1) ||
		    !vector_push(&builder->candidates, candidate))
			return false;
	}
	return true;
}

/* --- from candidates to ranges ------------------------------------------------ */

static int compare_names(const char *a, const char *b)
{
	size_t underscores_a = strspn(a, "_"), underscores_b = strspn(b, "_");
	if (underscores_a != underscores_b)
		return underscores_a < underscores_b ? -1 : 1;
	size_t length_a = strlen(a), length_b = strlen(b);
	if (length_a != length_b)
		return length_a < length_b ? -1 : 1;
	return strcmp(a, b);
}

/* By start; at one start the widest first, those of unknown size last. */
static int compare_candidates(const void *left, const void *right, void *names)
{
	const struct candidate *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->reach != b->reach)
		return a->reach < b->reach ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return compare_names((char *)names + a->name, (char *)names + b->name);
}

const char *symbol_table_builder_find(const struct symbol_table_builder *builder, uint64_t start)
{
	const struct candidate *found = NULL;
	for (size_t i = 0; i < builder->candidates.count; i++) {
		const struct candidate *candidate = &builder->candidates.items[i];
		if (candidate->start == start && candidate->reach != REACH_NOTHING &&
		    (!found || compare_candidates(candidate, found, builder->names.items) < 0))
			found = candidate;
	}
	return found ? builder->names.items + found->name : NULL;
}

/* Settles how far symbols of unknown size reach and drops what names nothing:
 * second names for a range, labels. Returns the number left. */
static size_t commit(struct candidate *candidates, size_t count)
{
	size_t kept = 0;
	uint64_t claimed = 0; /* end of what sized symbols cover so far */
	for (size_t i = 0; i < count; i++) {
		struct candidate candidate = candidates[i];
		if (kept && candidates[kept - 1].start == candidate.start &&
		    (candidate.reach != REACH_SIZE || candidates[kept - 1].end == candidate.end))
			continue;
		if (candidate.reach == REACH_SIZE) {
			if (candidate.end > claimed)
				claimed = candidate.end;
		} else {
			if (candidate.reach == REACH_NOTHING || candidate.start < claimed)
				continue;
			for (size_t next = i + 1; next < count; next++)
				if (candidates[next].start != candidate.start) {
					if (candidates[next].start < candidate.end)
						candidate.end = candidates[next].start;
					break;
				}
			candidate.reach = REACH_SIZE;
		}
		candidates[kept++] = candidate;
	}
	return kept;
}

static void emit(struct symbol_table *table, uint64_t start, uint64_t end, uint32_t name)
{
	if (start >= end)
		return;
	/* A range may be cut in three or more by ranges inside; what does not fit 32
	 * bits cannot come from a symbol that judge() let through. */
	table->ranges[table->count++] =
		(struct symbol_range){ .start = start, .size = (uint32_t)(end - start), .name = name };
}

/* Sweeps over the sorted candidates with the stack of those that are open. */
static void flatten(struct symbol_table *table, const struct candidate *candidates, size_t count,
                    uint32_t *open)
{
	size_t depth = 0;
	uint64_t position = 0;
	for (size_t i = 0; i <= count; i++) {
		uint64_t start = i < count ? candidates[i].start : UINT64_MAX;
		while (depth && candidates[open[depth - 1]].end <= start) {
			const struct candidate *top = &candidates[open[--depth]];
			emit(table, position, top->end, top->name);
			if (top->end > position)
				position = top->end;
		}
		if (i == count)
			break;
		if (depth)
			emit(table, position, start, candidates[open[depth - 1]].name);
		position = start;
		open[depth++] = (uint32_t)i;
	}
}

struct symbol_table *symbol_table_builder_finish(struct symbol_table_builder *builder)
{
	size_t count = builder->candidates.count;
	if (count) {
		qsort_r(builder->candidates.items, count, sizeof(*builder->candidates.items),
		        compare_candidates, builder->names.items);
		count = commit(builder->candidates.items, count);
	}
	/* Each candidate opens one range and, at its end, lets the outer one go on. */
	struct symbol_table *table = malloc(sizeof(*table) + (2 * count + 1) * sizeof(table->ranges[0]));
	uint32_t *open = malloc((count + 1) * sizeof(*open));
	if (table && open) {
		table->count = 0;
		flatten(table, builder->candidates.items, count, open);
		table->names = builder->names.items;
		builder->names.items = NULL; /* the table's now */
	} else {
		free(table);
		table = NULL;
	}
	free(open);
	symbol_table_builder_free(builder);
	return table;
}

void symbol_table_builder_free(struct symbol_table_builder *builder)
{
	vector_free(&builder->candidates);
	vector_free(&builder->names);
}
