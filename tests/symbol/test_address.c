/*
 * What people get to read for an address: the forms that address.h promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/store.h"
#include "trace/address.h"
#include "symbol/elf_image.h"
#include "symbol/symbol.h"

/* The fake store: one module at BASE, the fixture, and one that has no file. */
#define BASE UINT64_C(0x7f0000000000)
#define GONE UINT64_C(0x7e0000000000)
#define MODULE_BYTES UINT64_C(0x100000)

bool store_locate(uint64_t address, struct store_location *location)
{
	uint64_t base = address >= BASE ? BASE : GONE;
	if (address < base || address >= base + MODULE_BYTES)
		return false;
	*location = (struct store_location){
		.path = base == BASE ? FIXTURES "/full.so" : "/usr/lib/libgone.so.1.2",
		.build_id = base == BASE ? "a1b2c3d4e5f60718" : "00",
		.address = address - base,
		.offset = address - base,
	};
	return true;
}

/* The address of a symbol, found without the code that is tested here. */
static uint64_t find_symbol(const char *wanted)
{
	struct elf_image image;
	uint64_t found = 0;
	assert_true(elf_image_open(&image, FIXTURES "/full.so"));
	const Elf64_Shdr *section = elf_image_section_of_type(&image, SHT_SYMTAB);
	assert_non_null(section);
	Elf64_Sym *symbols = elf_image_contents(&image, section);
	char *names = elf_image_contents(&image, &image.sections[section->sh_link]);
	assert_true(symbols && names);
	for (size_t i = 0; i < section->sh_size / sizeof(*symbols); i++)
		if (strcmp(names + symbols[i].st_name, wanted) == 0)
			found = symbols[i].st_value;
	free(symbols);
	free(names);
	elf_image_close(&image);
	assert_true(found != 0);
	return found;
}

static void expect(char *seen, const char *expected)
{
	if (!seen != !expected || (seen && strcmp(seen, expected) != 0))
		fail_msg("expected %s, seen %s", expected ? expected : "nothing", seen ? seen : "nothing");
	free(seen);
}

static void test_function(void **state)
{
	(void)state;
	uint64_t walk = BASE + find_symbol("_ZN7fixture5Thing4walkEPKci");
	expect(address_symbol(walk), "_ZN7fixture5Thing4walkEPKci");
	expect(address_text(walk), "fixture::Thing::walk(char const*, int)");
	char *line = address_line(walk);
	assert_non_null(line);
	const char *colon = strrchr(line, ':');
	assert_non_null(colon);
	assert_non_null(strstr(line, "/tests/symbol/fixture_cxx.cpp:"));
	assert_true(atoi(colon + 1) > 0);
	free(line);
	expect(address_text(BASE + find_symbol("fixture_static")), "fixture_static");
}

static void test_between_functions(void **state)
{
	(void)state;
	uint64_t hole = find_symbol("fixture_hole");
	char expected[64];
	snprintf(expected, sizeof(expected), "full.so+0x%llx", (unsigned long long)hole);
	expect(address_symbol(BASE + hole), expected);
	expect(address_text(BASE + hole), expected);
}

static void test_object_that_cannot_be_read(void **state)
{
	(void)state;
	expect(address_symbol(GONE + 0x1a2b), "libgone.so.1.2+0x1a2b");
	expect(address_text(GONE + 0x1a2b), "libgone.so.1.2+0x1a2b");
	expect(address_line(GONE + 0x1a2b), "/usr/lib/libgone.so.1.2");
}

static void test_nowhere(void **state)
{
	(void)state;
	expect(address_symbol(0x1234), NULL);
	expect(address_line(0x1234), NULL);
	expect(address_text(0x1234), "0x1234");
}

static bool nothing_is_anywhere(uint64_t address, struct store_location *location)
{
	(void)address;
	(void)location;
	return false;
}

static void test_other_locator(void **state)
{
	(void)state;
	address_use_locator(nothing_is_anywhere);
	expect(address_symbol(GONE + 1), NULL);
	address_use_locator(NULL);
	expect(address_symbol(GONE + 1), "libgone.so.1.2+0x1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_between_functions),
		cmocka_unit_test(test_object_that_cannot_be_read),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_other_locator),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
