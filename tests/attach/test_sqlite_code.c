/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the offsets of members in the code of SQLite's short functions, as several compilers generate it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/attach/sqlite_code.h"

#define CODE(bytes) (const unsigned char *)(bytes), sizeof(bytes) - 1

static void loads_the_result(void **state)
{
	(void)state;
	/* gcc -O2: test; je; mov 0xf8(%rdi),%rax; ret */
	assert_int_equal(sqlite_code_loaded_offset(CODE("\x48\x85\xff\x74\x0b\x48\x8b\x87\xf8\0\0\0\xc3")),
	                 0xf8);
	/* with endbr64, and a byte as displacement */
	assert_int_equal(
		sqlite_code_loaded_offset(CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x74\x05\x48\x8b\x47\x78\xc3")),
		0x78);
	/* gcc -Os: mov %rdi,%rax; test; je; mov (%rdi),%rax; ret */
	assert_int_equal(sqlite_code_loaded_offset(CODE("\x48\x89\xf8\x48\x85\xff\x74\x03\x48\x8b\x07\xc3")),
	                 0);
	/* gcc -O0: stores the value in two variables */
	assert_int_equal(sqlite_code_loaded_offset(
				 CODE("\x55\x48\x89\xe5\x48\x89\x7d\xe8\x48\x8b\x45\xe8\x48\x89\x45\xf8\x48"
	                              "\x83\x7d\xf8\0\x74\x0d\x48\x8b\x45\xf8\x48\x8b\x80\xf8\0\0\0\xeb\x05"
	                              "\xb8\0\0\0\0\x5d\xc3")),
	                 0xf8);
}

static void loads_something_else(void **state)
{
	(void)state;
	/* It calls a function first. */
	assert_int_equal(sqlite_code_loaded_offset(CODE("\xe8\0\0\0\0\x48\x8b\x87\xf8\0\0\0\xc3")), -1);
	/* mov 0xf8(%rsi),%rax */
	assert_int_equal(sqlite_code_loaded_offset(CODE("\x48\x8b\x86\xf8\0\0\0\xc3")), -1);
	/* mov 0x10(%rdi),%rdi; mov 0xf8(%rdi),%rax: a member of another object */
	assert_int_equal(sqlite_code_loaded_offset(CODE("\x48\x8b\x7f\x10\x48\x8b\x87\xf8\0\0\0\xc3")), -1);
	/* mov -8(%rdi),%rax; a load of 32 bits */
	assert_int_equal(sqlite_code_loaded_offset(CODE("\x48\x8b\x47\xf8\xc3")), -1);
	assert_int_equal(sqlite_code_loaded_offset(CODE("\x8b\x47\x08\xc3")), -1);
	assert_int_equal(sqlite_code_loaded_offset(CODE("")), -1);
	/* The instruction continues after the end of the function. */
	assert_int_equal(sqlite_code_loaded_offset(CODE("\x48\x8b\x87\xf8")), -1);
}

static void assert_kept(struct kept_argument kept, int kind, unsigned number, int offset)
{
	assert_int_equal(kept.kind, kind);
	assert_int_equal(kept.number, number);
	assert_int_equal(kept.offset, offset);
}

static void keeps_the_argument(void **state)
{
	(void)state;
	/* push ...; sub; test; je; mov (%rdi),%rax; mov %rdi,%rbx: DWARF's number of rbx is 3 */
	assert_kept(sqlite_code_kept(CODE("\x41\x57\x53\x48\x83\xec\x28\x48\x85\xff\x74\x10\x48\x8b\x07\x48"
	                                  "\x89\xfb\xe8\0\0\0\0")),
	            KEPT_IN_REGISTER, 3, 0);
	/* mov %rdi,%r12; mov %rdi,%rbp */
	assert_kept(sqlite_code_kept(CODE("\x55\x49\x89\xfc\xe8\0\0\0\0")), KEPT_IN_REGISTER, 12, 0);
	assert_kept(sqlite_code_kept(CODE("\x55\x48\x89\xfd\xe8\0\0\0\0")), KEPT_IN_REGISTER, 6, 0);
	/* mov %rdi,-0x18(%rbp); mov %rdi,0x8(%rsp) */
	assert_kept(sqlite_code_kept(CODE("\x55\x48\x89\xe5\x48\x89\x7d\xe8\xe8\0\0\0\0")), KEPT_ON_STACK, 6,
	            -0x18);
	assert_kept(sqlite_code_kept(CODE("\x48\x89\x7c\x24\x08\xe8\0\0\0\0")), KEPT_ON_STACK, 7, 8);
	/* Saved after the call; saved in a register that calls change; replaced before it is saved. */
	assert_kept(sqlite_code_kept(CODE("\xe8\0\0\0\0\x48\x89\xfb\xc3")), KEPT_UNKNOWN, 0, 0);
	assert_kept(sqlite_code_kept(CODE("\x48\x89\xf8\xc3")), KEPT_UNKNOWN, 0, 0);
	assert_kept(sqlite_code_kept(CODE("\x48\x8b\x3f\x48\x89\xfb\xc3")), KEPT_UNKNOWN, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_the_result),
		cmocka_unit_test(loads_something_else),
		cmocka_unit_test(keeps_the_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
