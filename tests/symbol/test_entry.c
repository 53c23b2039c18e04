/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main and _start of stripped programs get their names if the start-up code proves them, and only then. The
 * truth is the symbol table of the same program before it is stripped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/elf_image.h"
#include "symbol/symbol.h"

struct program {
	char path[4096], build_id[BUILD_ID_TEXT];
	struct symbol_object object;
};

static void open_program(struct program *program, const char *folder, const char *name)
{
	struct elf_image image;
	snprintf(program->path, sizeof(program->path), "%s/%s", folder, name);
	if (!elf_image_open(&image, program->path))
		fail_msg("%s cannot be read", program->path);
	elf_image_build_id(&image, program->build_id);
	elf_image_close(&image);
	program->object = (struct symbol_object){ .path = program->path, .build_id = program->build_id };
}

/* Compares the names of functions in the unstripped program with the names in the stripped program. */
static unsigned count_names(const char *name, bool is_named)
{
	struct program whole, stripped;
	open_program(&whole, ENTRIES, name);
	open_program(&stripped, ENTRIES "/stripped", name);
	assert_true(symbol_set_debug_path(ENTRIES "/nowhere"));
	unsigned named = 0, functions = 0;
	const char *before = NULL;
	for (uint64_t at = 0; at < UINT64_C(0x405000); at++) {
		if (at == 0x10000) /* a program starts at 0, or at 4 MiB if not relocatable */
			at = UINT64_C(0x400000);
		const char *truth = symbol_name(&whole.object, at);
		const char *seen = symbol_name(&stripped.object, at);
		bool is_entry = truth && (strcmp(truth, "main") == 0 || strcmp(truth, "_start") == 0);
		bool is_stub = truth && strchr(truth, '@');
		if (is_entry && is_named && (!seen || strcmp(seen, truth) != 0))
			fail_msg("%s: %s at 0x%llx is called %s", name, truth, (unsigned long long)at,
			         seen ? seen : "nothing");
		else if (seen && !is_stub && (!truth || strcmp(seen, truth) != 0 || !is_entry))
			fail_msg("%s: %s at 0x%llx is called %s", name, truth ? truth : "nothing",
			         (unsigned long long)at, seen);
		else if (seen && !is_named && is_entry)
			fail_msg("%s: %s is named", name, seen);
		functions += truth && truth != before && strncmp(truth, "entry_", 6) == 0;
		named += seen && is_entry && truth != before;
		before = truth;
	}
	assert_true(functions >= 2); /* functions without a name, see entry_program.c */
	return named;
}

static void test_relocatable_program(void **state)
{
	(void)state;
	assert_int_equal(count_names("entry_pie", true), 2);
}

static void test_program_at_fixed_addresses(void **state)
{
	(void)state;
	assert_int_equal(count_names("entry_fixed", true), 2);
}

/* The same code as in the C run-time, from another file. */
static void test_own_start_that_proves_main(void **state)
{
	(void)state;
	assert_int_equal(count_names("entry_own", true), 2);
}

static void test_start_that_calls_another_function(void **state)
{
	(void)state;
	assert_int_equal(count_names("entry_another", false), 0);
}

static void test_start_with_unknown_instruction(void **state)
{
	(void)state;
	assert_int_equal(count_names("entry_unknown", false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relocatable_program),
		cmocka_unit_test(test_program_at_fixed_addresses),
		cmocka_unit_test(test_own_start_that_proves_main),
		cmocka_unit_test(test_start_that_calls_another_function),
		cmocka_unit_test(test_start_with_unknown_instruction),
	};
#ifdef __x86_64__
	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	(void)tests; /* entry.c does not support this machine yet */
	return 0;
#endif
}
