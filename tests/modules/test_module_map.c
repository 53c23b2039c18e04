/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules may be added in any order. The map finds each by each of its addresses, and by no other address.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modules/module_map.h"

#define MODULES 500
#define PLACE UINT64_C(0x10000) /* each module has one place, and fills a part of it */

static uint64_t next(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *random >> 33;
}

static void test_any_order(void **state)
{
	struct module modules[MODULES];
	struct module_map map = { 0 };
	uint64_t random = 1;

	(void)state;
	for (size_t i = 0; i < MODULES; i++) {
		/* 7 and MODULES have no common divisor, so each place is used once. */
		uint64_t start = PLACE * (1 + i * 7 % MODULES);
		modules[i] = (struct module){ .start = start, .end = start + 1 + next(&random) % PLACE };
		assert_true(module_map_add(&map, &modules[i]));
	}
	assert_int_equal(map.count, MODULES);
	for (size_t i = 0; i < MODULES; i++) {
		assert_ptr_equal(module_map_find(&map, modules[i].start), &modules[i]);
		assert_ptr_equal(module_map_find(&map, modules[i].end - 1), &modules[i]);
		if (modules[i].end % PLACE)
			assert_null(module_map_find(&map, modules[i].end));
	}
	assert_null(module_map_find(&map, 0));
	assert_null(module_map_find(&map, PLACE - 1));
	assert_null(module_map_find(&map, UINT64_MAX));
	module_map_free(&map);
	assert_null(module_map_find(&map, modules[0].start));
}

static void test_copies_own_their_texts(void **state)
{
	char path[] = "/lib/a.so", build_id[] = "00ff";
	const struct module module = { .start = 1, .end = 2, .path = path, .build_id = build_id };
	struct module *copy = module_copy(&module);

	(void)state;
	assert_non_null(copy);
	path[1] = build_id[1] = 'x';
	assert_string_equal(copy->path, "/lib/a.so");
	assert_string_equal(copy->build_id, "00ff");
	assert_int_equal(copy->end, 2);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_copies_own_their_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
