/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library writes slots in data, and in constants, like SQLite's table in a program at a fixed address.
 * (node crashed there when it opened a database file.) Slots in code stay unchanged.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "hook/import.h"

static void *in_data[2];
static void *const among_constants[2];

static bool is_writable(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], mode[5] = "";
	uintptr_t start, end;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 &&
		    (uintptr_t)address - start < end - start)
			break;
	fclose(maps);
	return mode[1] == 'w';
}

static void *read_slot(void *const volatile *slot)
{
	return *slot;
}

static void test_data(void **state)
{
	(void)state;
	assert_true(import_set(&in_data[1], in_data[1], in_data));
	assert_ptr_equal(read_slot(&in_data[1]), in_data);
	assert_true(is_writable(in_data));
}

static void test_constants(void **state)
{
	(void)state;
	assert_false(is_writable(among_constants));
	assert_true(import_set((void **)&among_constants[1], among_constants[1], in_data));
	assert_ptr_equal(read_slot(&among_constants[1]), in_data);
	assert_false(is_writable(among_constants));
}

/* A value that another library wrote stays. */
static void test_other_value(void **state)
{
	(void)state;
	in_data[0] = &in_data[1];
	assert_false(import_set(&in_data[0], NULL, in_data));
	assert_ptr_equal(read_slot(&in_data[0]), &in_data[1]);
}

/* import_set() does not write code. */
static void test_code(void **state)
{
	void **slot = (void **)(((uintptr_t)test_code + sizeof(void *) - 1) & -sizeof(void *));

	(void)state;
	assert_false(import_set(slot, *slot, in_data));
}

#ifdef TEXT_RELOCATIONS
static int no_close(int fd)
{
	return fd;
}

/* The object has text relocations. Only its slot in data is written. */
static void test_slots_among_code(void **state)
{
	void *object = dlopen(TEXT_RELOCATIONS, RTLD_NOW);
	struct import_hook hook = import_hook_of("close", NULL, (void *)no_close);
	int (*by_code)(int), (**by_data)(int);

	(void)state;
	assert_non_null(object);
	*(void **)&by_code = dlsym(object, "close_by_code");
	*(void **)&by_data = dlsym(object, "close_by_data");
	hook.only_in = by_data;
	assert_true(import_patch(&(struct import_table){ &hook, 1, "nobodys_" }, 1000000000));
	assert_int_equal((*by_data)(-1000), -1000);
	assert_int_equal(by_code(-1000), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(hook.elsewhere, 1);
}
#endif

static void test_nobodys(void **state)
{
	void *slot = NULL;

	(void)state;
	assert_false(import_set(&slot, NULL, in_data));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_other_value),
		cmocka_unit_test(test_code),
#ifdef TEXT_RELOCATIONS
		cmocka_unit_test(test_slots_among_code),
#endif
		cmocka_unit_test(test_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
