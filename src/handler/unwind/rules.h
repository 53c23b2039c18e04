/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind rule of an address: from the rule cache or, on a miss, from LLVM's parser.
 * Everything here is async-signal-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/code_map.h"
#include "handler/unwind/arch.h"

/*
 * The rule cache. A slot is one 64-bit word: the rule in the high bits, the address without its
 * lowest bits (the tag) below. A word is complete, so any number of threads may load and store it
 * with relaxed order. The lowest bits of the address, mixed with bits of the tag, choose the set. Set
 * and tag together are the whole address, so a hit is exact. The cache has two ways, because some
 * layouts of the address space make a direct-mapped one thrash; the second way is a table after the
 * first.
 *
 * The steps from one return address to the next depend on each other, and the lookup is most of each
 * step. So it has no multiplication, addressing modes scale the set's index, and one shift extracts
 * the rule with its offset.
 */
#define CACHE_WAYS 2
#define CACHE_SET_BITS 13
#define CACHE_ADDRESS_BITS 48
#define CACHE_TAG_BITS (CACHE_ADDRESS_BITS - CACHE_SET_BITS)

_Static_assert(CACHE_TAG_BITS + RULE_BITS <= 64, "tag and rule fill a word");

#define CACHE_SETS (1u << CACHE_SET_BITS)

static inline uint64_t *cache_set(uint64_t *rules, uintptr_t address)
{
	return rules + ((address ^ address >> CACHE_SET_BITS) & (CACHE_SETS - 1));
}

/* Longer than CACHE_TAG_BITS for a value that is not an address. */
static inline uint64_t cache_tag(uintptr_t address)
{
	return address >> CACHE_SET_BITS;
}

/* A rule of an object that is not in the map yet must not outlive the stack. */
struct found_rule {
	rule_t rule;
	bool lasting;
};

struct found_rule rules_find_uncached(const struct code_map *map, uintptr_t address);

/* Finds the unwind information for an address in the map or in the loader's own lock-free
 * table. Fills *section for the first two results. */
enum section_result {
	SECTION_LASTING, /* of an object that the map knows */
	SECTION_NEWER,   /* of an object that the map does not know yet */
	SECTION_NONE,    /* the map's object has no unwind information */
	SECTION_NO_CODE, /* no object known to hold the address */
};
enum section_result rules_find_section(const struct code_map *map, uintptr_t address,
                                       struct cfi_section *section);

/* Where code at an address has saved a register of its caller: the number of words below the CFA;
 * 0: it is unchanged. False: not known. Results are kept after the map's rules, which they need. */
#define SAVED_SLOTS 256u
bool rules_find_saved(const struct code_map *map, uintptr_t address, unsigned number, unsigned *words);

/* The lookup that nearly every frame needs; `rules` is the map's cache. */
__attribute__((always_inline)) static inline struct found_rule rules_find(const struct code_map *map,
                                                                          uint64_t *rules, uintptr_t address)
{
	if (__builtin_expect(rules != NULL, 1)) {
		const uint64_t *set = cache_set(rules, address);
		for (int way = 0; way < CACHE_WAYS; way++) {
			const uint64_t word = __atomic_load_n(&set[way * CACHE_SETS], __ATOMIC_RELAXED);
			/* An empty slot is tag 0 with RULE_UNSET, which no kept rule has. */
			if (__builtin_expect((word & ((UINT64_C(1) << CACHE_TAG_BITS) - 1)) ==
			                                     cache_tag(address) &&
			                             word != 0,
			                     1))
				return (struct found_rule){ (rule_t)word >> CACHE_TAG_BITS, true };
		}
	}
	return rules_find_uncached(map, address);
}
