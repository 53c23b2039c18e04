/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without libdw, addresses are shown as module+offset.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modules/module_map.h"
#include "frames/address.h"
#include "symbol/symbol.h"

#define PATH FIXTURES "/full.so"

static unsigned asked;

/* Replaces the C library's dlopen(). */
void *dlopen(const char *name, int flags)
{
	(void)flags;
	asked += strncmp(name, "libdw.so", 8) == 0;
	return NULL;
}

static const struct module *locate(const struct address_space *space, uint64_t address)
{
	static const struct module module = { .path = PATH, .build_id = "a1b2c3d4e5f60718" };
	(void)space;
	(void)address;
	return &module;
}

static const struct address_space space = { .locate = locate };

static void expect(char *seen, const char *expected)
{
	if (!seen || strcmp(seen, expected) != 0)
		fail_msg("expected %s, seen %s", expected, seen ? seen : "nothing");
	free(seen);
}

static void test_addresses_are_still_shown(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		expect(address_symbol(&space, 0x1234), "full.so+0x1234");
		expect(address_text(&space, 0x1234), "full.so+0x1234");
		expect(address_line(&space, 0x1234), PATH);
		symbol_forget();
	}
	assert_int_equal(asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_addresses_are_still_shown) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
