/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts that people read for an address, in the forms that address.h documents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modules/module_map.h"
#include "frames/address.h"
#include "symbol/elf_image.h"
#include "symbol/symbol.h"

/* A space with two modules: the fixture at BASE, and a module without a file at GONE. */
#define BASE UINT64_C(0x7f0000000000)
#define GONE UINT64_C(0x7e0000000000)
#define MODULE_BYTES UINT64_C(0x100000)

static const struct module *locate(const struct address_space *space, uint64_t address)
{
	static const struct module modules[] = {
		{ .bias = BASE,
		  .start = BASE,
		  .end = BASE + MODULE_BYTES,
		  .path = FIXTURES "/full.so",
		  .build_id = "a1b2c3d4e5f60718" },
		{ .bias = GONE,
		  .start = GONE,
		  .end = GONE + MODULE_BYTES,
		  .path = "/usr/lib/libgone.so.1.2",
		  .build_id = "00" },
	};
	(void)space;
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (address >= modules[i].start && address < modules[i].end)
			return &modules[i];
	return NULL;
}

static const struct address_space space = { .locate = locate };

/* Returns the address of a symbol, without the code under test. */
static uint64_t find_symbol(const char *wanted)
{
	struct elf_image image;
	uint64_t found = 0;
	assert_true(elf_image_open(&image, FIXTURES "/full.so"));
	const Elf64_Shdr *section = elf_image_section_of_type(&image, SHT_SYMTAB);
	assert_non_null(section);
	Elf64_Sym *symbols = elf_image_read(&image, section->sh_offset, section->sh_size);
	char *names = elf_image_read(&image, image.sections[section->sh_link].sh_offset,
	                             image.sections[section->sh_link].sh_size);
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
	expect(address_symbol(&space, walk), "_ZN7fixture5Thing4walkEPKci");
	expect(address_text(&space, walk), "fixture::Thing::walk(char const*, int)");
	char *line = address_line(&space, walk);
	assert_non_null(line);
	const char *colon = strrchr(line, ':');
	assert_non_null(colon);
	assert_non_null(strstr(line, "/tests/symbol/fixture_cxx.cpp:"));
	assert_true(atoi(colon + 1) > 0);
	free(line);
	expect(address_text(&space, BASE + find_symbol("fixture_static")), "fixture_static");
}

static void test_between_functions(void **state)
{
	(void)state;
	uint64_t hole = find_symbol("fixture_hole");
	char expected[64];
	snprintf(expected, sizeof(expected), "full.so+0x%llx", (unsigned long long)hole);
	expect(address_symbol(&space, BASE + hole), expected);
	expect(address_text(&space, BASE + hole), expected);
}

static void test_object_that_cannot_be_read(void **state)
{
	(void)state;
	expect(address_symbol(&space, GONE + 0x1a2b), "libgone.so.1.2+0x1a2b");
	expect(address_text(&space, GONE + 0x1a2b), "libgone.so.1.2+0x1a2b");
	expect(address_line(&space, GONE + 0x1a2b), "/usr/lib/libgone.so.1.2");
}

static void test_nowhere(void **state)
{
	(void)state;
	expect(address_symbol(&space, 0x1234), NULL);
	expect(address_line(&space, 0x1234), NULL);
	expect(address_text(&space, 0x1234), "0x1234");
}

/* Another space, used at the same time. No address is in a module, and the space's file has the frames of one
 * address. */
struct recalling {
	struct address_space space;
	uint64_t known;
	bool has_lines;
};

static const struct module *locate_nowhere(const struct address_space *of, uint64_t address)
{
	(void)of;
	(void)address;
	return NULL;
}

static size_t recall(const struct address_space *of, uint64_t address, struct symbol_frame *frames,
                     size_t room)
{
	const struct recalling *recalling = (const struct recalling *)of;
	const char *file = recalling->has_lines ? "a.c" : NULL;
	if (address != recalling->known || room < 2)
		return 0;
	frames[0] = (struct symbol_frame){ "inlined", file, file ? 7 : 0, true };
	frames[1] = (struct symbol_frame){ "whole", file, file ? 9 : 0, false };
	return 2;
}

static char *name_generated(const struct address_space *of, uint64_t address)
{
	(void)of;
	return address == 0x2000 ? strdup("_Z9generatedv") : NULL;
}

static void test_spaces_side_by_side(void **state)
{
	const struct recalling file = { { locate_nowhere, recall, name_generated }, GONE + 1, true };
	(void)state;
	expect(address_symbol(&file.space, GONE + 1), "whole");
	expect(address_symbol(&space, GONE + 1), "libgone.so.1.2+0x1");
	expect(address_text(&file.space, GONE + 1), "whole");
	expect(address_line(&file.space, GONE + 1), "a.c:7");
	expect(address_symbol(&file.space, GONE + 2), NULL);
	expect(address_build_id(&file.space, GONE + 1), NULL);
	expect(address_build_id(&space, GONE + 1), "00");
	expect(address_symbol(&file.space, 0x2000), "_Z9generatedv");
	expect(address_symbol(&space, 0x2000), NULL);
}

/* If the file has only names, the frames come from the object if it has lines. */
static void test_the_better_frames_are_taken(void **state)
{
	uint64_t walk = BASE + find_symbol("_ZN7fixture5Thing4walkEPKci");
	struct recalling file = { { locate, recall, NULL }, walk, false };
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	(void)state;
	assert_int_equal(address_frames(&file.space, walk, frames, SYMBOL_FRAMES_MAX), 1);
	assert_string_equal(frames[0].function, "_ZN7fixture5Thing4walkEPKci");
	assert_true(frames[0].line > 0);
	file.has_lines = true;
	assert_int_equal(address_frames(&file.space, walk, frames, SYMBOL_FRAMES_MAX), 2);
	assert_string_equal(frames[0].function, "inlined");
	/* The file has only names, and the object is gone. */
	file = (struct recalling){ { locate, recall, NULL }, GONE + 4, false };
	assert_int_equal(address_frames(&file.space, GONE + 4, frames, SYMBOL_FRAMES_MAX), 2);
	assert_string_equal(frames[1].function, "whole");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_between_functions),
		cmocka_unit_test(test_object_that_cannot_be_read),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_spaces_side_by_side),
		cmocka_unit_test(test_the_better_frames_are_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
