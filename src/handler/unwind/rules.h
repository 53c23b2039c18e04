/*
 * From an address to its unwind rule: the rule cache and, on a miss, LLVM's
 * parser. Everything here is async-signal-safe.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_RULES_H
#define QUERYPROF_HANDLER_UNWIND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/unwind/code_map.h"
#include "handler/unwind/unwind.h"
#include "handler/unwind/arch.h"

/*
 * One 64-bit word a slot: the rule at the top, below it the address without its lowest
 * bits as the tag. A word is whole by itself, so that relaxed loads and stores by
 * any number of threads suffice. The lowest bits, mixed with bits of the tag, choose
 * the set: set and tag together give the address back, so a hit is exact, never
 * probable. Two ways, as unlucky layouts of the address space made a direct-mapped
 * cache thrash; they are two tables, one behind the other.
 *
 * The way from one return address to the next is one chain of dependent instructions,
 * and this is most of it: no multiplication, a set is an index that the processor
 * scales itself, and one shift makes an offset of the rule.
 */
#define CACHE_WAYS 2
#define CACHE_SET_BITS 13
#define CACHE_ADDRESS_BITS 48
#define CACHE_TAG_BITS (CACHE_ADDRESS_BITS - CACHE_SET_BITS)

_Static_assert(CACHE_TAG_BITS + RULE_BITS <= 64, "tag and rule fill a word");

/* Its second way is CACHE_SETS words on. */
#define CACHE_SETS (1u << CACHE_SET_BITS)

static inline uint64_t *cache_set(uint64_t *rules, uintptr_t address)
{
	return rules + ((address ^ address >> CACHE_SET_BITS) & (CACHE_SETS - 1));
}

/* Longer than a tag for what is no address. */
static inline uint64_t cache_tag(uintptr_t address)
{
	return address >> CACHE_SET_BITS;
}

/* A rule together with whether it may be kept: rules of objects that the map does
 * not know yet must not outlive the trace. */
struct found_rule {
	rule_t rule;
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

/* `rules` is the map's cache. */
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

void unwind_count(enum unwind_counter which);

#endif
