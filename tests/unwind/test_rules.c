/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At every address, the cached rule leads to the same result as the parser, and no bit of a rule is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/code_map.h"
#include "handler/unwind/rules.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"

#define MOST 400000u /* addresses per segment */

static void compare_range(const struct code_map *map, const struct code_map *without, uintptr_t start,
                          uintptr_t end, unsigned step, uint64_t *count)
{
	for (uintptr_t n = 0; n < end - start; n++) {
		const uintptr_t address = start + (n * step) % (end - start);
		const struct found_rule parsed = rules_find_uncached(without, address);

		/* The first call stores the rule in the cache, the second one finds it. */
		rules_find(map, map->rules, address);
		const struct found_rule kept = rules_find(map, map->rules, address);
		if (kept.rule != parsed.rule || kept.lasting != parsed.lasting)
			fail_msg("at %#lx: rule %#llx, %#llx with the cache", (unsigned long)address,
			         (unsigned long long)parsed.rule, (unsigned long long)kept.rule);
		++*count;
	}
}

static void test_every_address(void **state)
{
	const struct code_map *map = code_map_current();
	struct code_map *without = malloc(sizeof(*map) + map->count * sizeof(map->ranges[0]));
	uint64_t count = 0;

	(void)state;
	assert_non_null(without);
	memcpy(without, map, sizeof(*map) + map->count * sizeof(map->ranges[0]));
	without->rules = NULL;
	for (unsigned step = 1; step <= 40503; step += 40502) {
		for (uint32_t i = 0; i < map->count; i++) {
			const struct code_range *range = &map->ranges[i];
			uintptr_t end = range->end;

			if (end - range->start > MOST)
				end = range->start + MOST;
			memset(map->rules, 0, unwind_cache_bytes);
			compare_range(map, without, range->start, end, step, &count);
		}
	}
	print_message("%llu addresses compared in %u segments\n", (unsigned long long)count, map->count);
	assert_true(count > 500000);
	free(without);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_address) };

	if (modules_init() != 0)
		return 1;
	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
