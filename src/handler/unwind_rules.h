/*
 * From an address to its unwind rule: the rule cache and, on a miss, LLVM's
 * parser. Everything here is async-signal-safe.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_RULES_H
#define QUERYPROF_HANDLER_UNWIND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/code_map.h"
#include "handler/unwind.h"
#include "handler/unwind_arch.h"

/*
 * One 64-bit word a slot: the rule below, above it what tells the address from
 * the others of its set. A word is whole by itself, so that relaxed loads and
 * stores by any number of threads suffice. The address is mixed by a bijection of
 * 48 bits, of which one part chooses the set and the other is the tag: a hit is
 * exact, never probable. Two ways, as unlucky layouts of the address space made a
 * direct-mapped cache thrash.
 */
#define CACHE_WAYS 2
#define CACHE_SET_BITS 13
#define CACHE_ADDRESS_BITS 48

_Static_assert(CACHE_ADDRESS_BITS - CACHE_SET_BITS + RULE_BITS <= 64, "tag and rule fill a word");

static inline uint64_t cache_mix(uint64_t address)
{
	const uint64_t mask = (UINT64_C(1) << CACHE_ADDRESS_BITS) - 1;
	address ^= address >> 17;
	address = address * UINT64_C(0x9e3779b97f4b) & mask; /* odd: a bijection */
	return address ^ address >> 23;
}

/* A rule together with whether it may be kept: rules of objects that the map does
 * not know yet must not outlive the trace. */
struct found_rule {
	uint32_t rule;
	bool lasting;
};

struct found_rule rules_find_uncached(const struct code_map *map, uintptr_t address);

/* Where the unwind information for an address is, as the map or else the loader's
 * own lock-free table tells. *section is filled for the first two results. */
enum section_result {
	SECTION_LASTING, /* of an object that the map knows */
	SECTION_NEWER,   /* of an object that the map does not know yet */
	SECTION_NONE,    /* the map's object has no unwind information */
	SECTION_NO_CODE, /* no object known to hold the address */
};
enum section_result rules_find_section(const struct code_map *map, uintptr_t address,
                                       struct cfi_section *section);

static inline struct found_rule rules_find(const struct code_map *map, uintptr_t address)
{
	const uint64_t mixed = cache_mix(address);
	const uint64_t tag = mixed >> CACHE_SET_BITS;
	if (__builtin_expect(map->rules != NULL && address >> CACHE_ADDRESS_BITS == 0, 1)) {
		const uint64_t *set =
			map->rules + CACHE_WAYS * (mixed & ((1u << CACHE_SET_BITS) - 1));
		for (int way = 0; way < CACHE_WAYS; way++) {
			const uint64_t word = __atomic_load_n(&set[way], __ATOMIC_RELAXED);
			/* An empty slot is tag 0 with RULE_UNSET, which no kept rule has. */
			if (word >> RULE_BITS == tag && word != 0)
				return (struct found_rule){
					(uint32_t)(word & ((1u << RULE_BITS) - 1)), true};
		}
	}
	return rules_find_uncached(map, address);
}

void unwind_count(enum unwind_counter which);

#endif
