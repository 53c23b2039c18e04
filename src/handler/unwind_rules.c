/*
 * The slow path of unwind_rules.h: find the object that holds the address, parse
 * its unwind information, make a rule of the row, keep it.
 *
 * Objects come and go between two maps. So the loader is asked as well, where the
 * C library can answer without a lock (glibc >= 2.35): what it says wins, and what
 * the map did not know is used once and not kept. Elsewhere code newer than the
 * map has no unwind information until the next map.
 */
#include "handler/unwind_rules.h"

#include <dlfcn.h>
#include <stddef.h>

const unsigned unwind_cache_bytes = CACHE_WAYS * (1u << CACHE_SET_BITS) * sizeof(uint64_t);

static uint64_t counters[UNWIND_COUNTERS];

void unwind_count(enum unwind_counter which)
{
	__atomic_fetch_add(&counters[which], 1, __ATOMIC_RELAXED);
}

uint64_t unwind_counter(enum unwind_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* the C library's headers know the function */
extern __typeof(_dl_find_object) _dl_find_object __attribute__((weak));

enum loader_answer {
	LOADER_AGREES,
	LOADER_KNOWS_BETTER, /* *section is filled from its answer */
	LOADER_HAS_NONE,
	LOADER_SILENT,
};

static enum loader_answer ask_loader(const struct code_range *range, uintptr_t address,
                                     struct cfi_section *section)
{
	struct dl_find_object found;

	if (_dl_find_object == NULL)
		return LOADER_SILENT;
	if (_dl_find_object((void *)address, &found) != 0)
		return LOADER_HAS_NONE;
	const uintptr_t header = (uintptr_t)found.dlfo_eh_frame;
	if (range != NULL && (uintptr_t)found.dlfo_map_start == range->image_start &&
	    (header == range->eh_frame_hdr || range->eh_frame_hdr == 0))
		return LOADER_AGREES;
	if (header == 0)
		return LOADER_HAS_NONE;
	section->header = header;
	section->start = (uintptr_t)found.dlfo_map_start;
	section->end = (uintptr_t)found.dlfo_map_end;
	section->header_end = section->end;
	return LOADER_KNOWS_BETTER;
}
#endif

bool rules_find_section(const struct code_map *map, uintptr_t address, struct cfi_section *section,
                        bool *lasting)
{
	const struct code_range *range = code_map_find(map, address);

	*lasting = false;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	switch (ask_loader(range, address, section)) {
	case LOADER_KNOWS_BETTER:
		return true;
	case LOADER_HAS_NONE:
		return false;
	case LOADER_AGREES:
	case LOADER_SILENT:
		break;
	}
#endif
	if (range == NULL)
		return false;
	*lasting = true;
	if (range->eh_frame_hdr == 0)
		return false;
	*section = (struct cfi_section){
		.header = range->eh_frame_hdr,
		.header_end = range->eh_frame_hdr_end,
		.start = range->cfi_start,
		.end = range->cfi_end,
	};
	return true;
}

static void keep_rule(uint64_t *rules, uintptr_t address, uint32_t rule)
{
	const uint64_t mixed = cache_mix(address);
	uint64_t *set = rules + CACHE_WAYS * (mixed & ((1u << CACHE_SET_BITS) - 1));

	/* The newest goes first, the one before it stays; what others write at the
	 * same time costs at most a later miss. */
	__atomic_store_n(&set[1], __atomic_load_n(&set[0], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&set[0], (mixed >> CACHE_SET_BITS) << RULE_BITS | rule, __ATOMIC_RELAXED);
}

/* Not inlined: its frame and those below it belong to misses only. */
__attribute__((noinline)) struct found_rule rules_find_uncached(const struct code_map *map,
                                                                uintptr_t address)
{
	struct found_rule found = {RULE_NONE, false};
	struct cfi_section section;
	struct cfi_row row;

	unwind_count(UNWIND_CACHE_MISSES);
	if (rules_find_section(map, address, &section, &found.lasting) &&
	    cfi_find_row(&section, address, &row) == CFI_FOUND)
		found.rule = rule_from_row(&row);
	if (found.lasting && map->rules != NULL && address >> CACHE_ADDRESS_BITS == 0)
		keep_rule(map->rules, address, found.rule);
	return found;
}
