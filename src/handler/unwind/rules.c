/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glibc can find the object of an address without a lock (_dl_find_object, since 2.35). If it differs
 * from the map, the loader is right, and the rule serves one stack and is not kept. With an older
 * glibc at run time, code newer than the map has no unwind information until the next map.
 */
#include "handler/unwind/rules.h"

#include <stddef.h>

#include "base/newer_glibc.h"
#include "handler/unwind/distrust.h"
#include "wire/ledger.h"

/* The loader's section for the address; SECTION_LASTING: the map is right. */
static enum section_result find_in_loader(const struct code_range *range, uintptr_t address,
                                          struct cfi_section *section)
{
	struct dl_find_object found;

	if (!_dl_find_object || (range && range->is_made))
		return range ? SECTION_LASTING : SECTION_NO_CODE;
	if (_dl_find_object((void *)address, &found) != 0)
		return SECTION_NO_CODE;
	const uintptr_t header = (uintptr_t)found.dlfo_eh_frame;
	/* The loader names the segment if the object has gaps between its segments. */
	if (range &&
	    ((uintptr_t)found.dlfo_map_start == range->image_start ||
	     (uintptr_t)found.dlfo_map_start == range->start) &&
	    (header == range->eh_frame_hdr || range->eh_frame_hdr == 0))
		return SECTION_LASTING;
	section->header = header;
	section->start = (uintptr_t)found.dlfo_map_start;
	section->end = (uintptr_t)found.dlfo_map_end;
	section->header_end = section->end;
	return SECTION_NEWER;
}

enum section_result rules_find_section(const struct code_map *map, uintptr_t address,
                                       struct cfi_section *section)
{
	const struct code_range *range = code_map_find(map, address);
	const enum section_result result = find_in_loader(range, address, section);

	if (result != SECTION_LASTING)
		return result;
	if (range->eh_frame_hdr == 0)
		return SECTION_NONE;
	*section = (struct cfi_section){
		.header = range->eh_frame_hdr,
		.header_end = range->eh_frame_hdr_end,
		.start = range->cfi_start,
		.end = range->cfi_end,
	};
	return result;
}

static void keep_rule(uint64_t *rules, uintptr_t address, rule_t rule)
{
	uint64_t *set = cache_set(rules, address);

	/* The newest rule takes the first way and moves the previous one to the second. Relaxed: a
	 * word is a complete rule, and a concurrent write of another thread costs at most a later
	 * miss. */
	__atomic_store_n(&set[CACHE_SETS], __atomic_load_n(&set[0], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&set[0], (uint64_t)rule << CACHE_TAG_BITS | cache_tag(address), __ATOMIC_RELAXED);
}

/* Whether the unwind information for the row's function may be wrong at `address`. Not inlined,
 * because parsing does not need its frame. */
__attribute__((noinline)) static bool is_distrusted(const struct code_map *map, bool lasting,
                                                    const struct cfi_section *section,
                                                    const struct cfi_row *row, uintptr_t address)
{
	/* The map does not know newer objects; the loader then gave the bounds. */
	const struct code_range *range = lasting ? code_map_find(map, address) : NULL;
	const uintptr_t start = range ? range->start : section->start;
	const uintptr_t end = range ? range->end : section->end;

	return row->function_start < start || row->function_end > end || distrust_row(section, row, address);
}

static rule_t parse_rule(const struct code_map *map, bool lasting, const struct cfi_section *section,
                         uintptr_t address)
{
	struct cfi_row row;
	rule_t rule;

	switch (cfi_find_row(section, address, &row)) {
	case CFI_FOUND:
		rule = rule_from_row(&row);
		if ((row.eh_return || (rule & 15) == RULE_SP) &&
		    is_distrusted(map, lasting, section, &row, address))
			return RULE_NONE;
		return rule;
	case CFI_NO_ENTRY:
		/* No call returns to the address in front of a function: makecontext() put
		 * it there as the end of a new stack. */
		if (cfi_find_row(section, address + 1, &row) == CFI_FOUND &&
		    row.function_start == address + 1)
			return RULE_START;
		return RULE_HOLE;
	default: return RULE_NONE;
	}
}

/* Not inlined: only misses need its frame and those below it. */
__attribute__((noinline)) struct found_rule rules_find_uncached(const struct code_map *map, uintptr_t address)
{
	struct found_rule found = { .lasting = true };
	struct cfi_section section;

	unwind_count(UNWIND_CACHE_MISSES);
	switch (rules_find_section(map, address, &section)) {
	case SECTION_NO_CODE: return (struct found_rule){ RULE_NOWHERE, false };
	case SECTION_NEWER: found.lasting = false; break;
	case SECTION_NONE: section.header = 0; break;
	case SECTION_LASTING: break;
	}
	found.rule = section.header != 0 ? parse_rule(map, found.lasting, &section, address) : RULE_TABLELESS;
	if (found.lasting && map->rules && address >> CACHE_ADDRESS_BITS == 0)
		keep_rule(map->rules, address, found.rule);
	return found;
}

/* A word has the address, the register's number, and how many words below the CFA. */
#define SAVED_UNKNOWN 255u

bool rules_find_saved(const struct code_map *map, uintptr_t address, unsigned number, unsigned *words)
{
	uint64_t *const slot = &map->rules[CACHE_WAYS * CACHE_SETS + address % SAVED_SLOTS];
	const uint64_t key = (uint64_t)address << 16 | number << 8;
	const uint64_t kept = __atomic_load_n(slot, __ATOMIC_RELAXED);
	struct cfi_section section;
	struct cfi_register saved = { CFI_OTHERWISE, 0 };

	*words = (uint8_t)kept;
	if (__builtin_expect((kept ^ *words) == key, 1))
		return *words != SAVED_UNKNOWN;
	if (rules_find_section(map, address, &section) != SECTION_LASTING)
		return false;
	cfi_find_register(&section, address, number, &saved);
	*words = saved.saved == CFI_SAME ? 0 : SAVED_UNKNOWN;
	if (saved.saved == CFI_AT_CFA && saved.value < 0 && saved.value % 8 == 0 && saved.value > -8 * 255)
		*words = (unsigned)(-saved.value / 8);
	__atomic_store_n(slot, key | *words, __ATOMIC_RELAXED);
	return *words != SAVED_UNKNOWN;
}
