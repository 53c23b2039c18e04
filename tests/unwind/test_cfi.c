/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Malformed unwind information: first known cases, then random ones. In all cases a call ends, stays within
 * the memory that it was given, and reports the error.
 *
 * The memory before and after a section is not readable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cfi.h"
#include "../lib/seed.h"

#define FUNCTION_SIZE 0x1000u

/* Memory between two inaccessible pages, filled from its end. */
struct guarded {
	uint8_t *start;
	size_t size;
};

static struct guarded make_guarded(size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct guarded memory;

	size = (size + page - 1) & ~(page - 1);
	uint8_t *all = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(all != MAP_FAILED);
	assert_int_equal(mprotect(all + page, size, PROT_READ | PROT_WRITE), 0);
	memory.start = all + page;
	memory.size = size;
	return memory;
}

static struct guarded memory, stack;
static uintptr_t function; /* address that the described function pretends to have */

/* Writes a header, a CIE and one FDE with these instructions. The section ends where the memory ends.
 * Addresses are absolute (DW_EH_PE_absptr), so that the function may pretend to be anywhere. */
static struct cfi_section build(const uint8_t *instructions, size_t size)
{
	uint8_t image[512] = { 0 };
	uint8_t cie[] = {
		0,    0, 0, 0,    0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, /* code 1, data -8 */
		0x0c, 7, 8, 0x90, 1, 0, 0,                                          /* CFA = rsp + 8 */
	};
	const uint32_t cie_length = sizeof(cie) - 4;
	const size_t fde_at = 20 + sizeof(cie);
	const uint32_t fde_length = (uint32_t)(4 + 16 + 1 + size);
	const uint32_t total = (uint32_t)(fde_at + 4 + fde_length);
	uint8_t *base;

	assert_true(total <= sizeof(image));
	memcpy(cie, &cie_length, 4);
	memcpy(image + 20, cie, sizeof(cie));
	memcpy(image + fde_at, &fde_length, 4);
	const uint32_t to_cie = (uint32_t)(fde_at + 4 - 20);
	memcpy(image + fde_at + 4, &to_cie, 4);
	const uint64_t range[2] = { function, FUNCTION_SIZE };
	memcpy(image + fde_at + 8, range, 16);
	image[fde_at + 24] = 0;
	memcpy(image + fde_at + 25, instructions, size);

	base = memory.start + memory.size - total;
	const uint8_t header[4] = { 1, 0x1b, 0x03, 0x3b };
	const uint32_t count = 1;
	const int32_t entry[2] = { (int32_t)(function - (uintptr_t)base), (int32_t)fde_at };
	memcpy(image, header, 4);
	memcpy(image + 8, &count, 4);
	memcpy(image + 12, entry, 8);
	memcpy(base, image, total);
	return (struct cfi_section){
		.header = (uintptr_t)base,
		.header_end = (uintptr_t)base + 20,
		.start = (uintptr_t)memory.start,
		.end = (uintptr_t)memory.start + memory.size,
	};
}

static enum cfi_result step(const struct cfi_section *section, uintptr_t pc, uint64_t *registers)
{
	const struct cfi_stack whole = { (uintptr_t)stack.start, (uintptr_t)stack.start + stack.size, NULL,
		                         NULL };
	bool signal_frame;

	for (int i = 0; i < CFI_REGISTERS; i++)
		registers[i] = 0x5000 + (uint64_t)i;
	registers[CFI_STACK_POINTER] = (uintptr_t)stack.start + stack.size - 256;
	return cfi_step(section, pc, &whole, registers, &signal_frame);
}

static void test_well_formed(void **state)
{
	/* From offset 4 on, rbp is saved at CFA-16, and the CFA is rsp+16. */
	const uint8_t code[] = { 0x44, 0x0e, 16, 0x86, 2 };
	struct cfi_section section = build(code, sizeof(code));
	struct cfi_register saved;
	struct cfi_row row;
	uint64_t registers[CFI_REGISTERS];
	uint64_t *sp = (uint64_t *)(void *)(stack.start + stack.size - 256);

	(void)state;
	assert_int_equal(cfi_find_row(&section, function, &row), CFI_FOUND);
	assert_int_equal(row.cfa_offset, 8);
	assert_int_equal(row.frame_pointer.saved, CFI_SAME);
	/* The row is in force from exactly the address where it begins. */
	assert_int_equal(cfi_find_row(&section, function + 3, &row), CFI_FOUND);
	assert_int_equal(row.cfa_offset, 8);
	assert_int_equal(cfi_find_row(&section, function + 4, &row), CFI_FOUND);
	assert_int_equal(row.cfa_offset, 16);
	assert_int_equal(row.cfa_register, CFI_STACK_POINTER);
	assert_int_equal(row.frame_pointer.saved, CFI_AT_CFA);
	assert_int_equal(row.frame_pointer.value, -16);
	assert_int_equal(row.return_address.value, -8);
	assert_int_equal(cfi_find_register(&section, function + 3, CFI_FRAME_POINTER, &saved), CFI_FOUND);
	assert_int_equal(saved.saved, CFI_SAME);
	assert_int_equal(cfi_find_register(&section, function + 4, CFI_FRAME_POINTER, &saved), CFI_FOUND);
	assert_int_equal(saved.saved, CFI_AT_CFA);
	assert_int_equal(saved.value, -16);
	assert_int_equal(cfi_find_register(&section, function - 1, CFI_FRAME_POINTER, &saved), CFI_NO_ENTRY);
	assert_int_equal(cfi_find_row(&section, function - 1, &row), CFI_NO_ENTRY);
	assert_int_equal(cfi_find_row(&section, function + FUNCTION_SIZE, &row), CFI_NO_ENTRY);

	sp[0] = 0x1111;
	sp[1] = 0x2222;
	assert_int_equal(step(&section, function + 4, registers), CFI_FOUND);
	assert_int_equal(registers[CFI_FRAME_POINTER], 0x1111);
	assert_int_equal(registers[CFI_INSTRUCTION_POINTER], 0x2222);
	assert_int_equal(registers[CFI_STACK_POINTER], (uintptr_t)(sp + 2));
}

static void test_malformed(void **state)
{
	static const struct {
		const char *name;
		uint8_t size, code[24];
		bool row_is_fine; /* only a step with all registers fails */
	} cases[] = {
		{ "unknown instruction", 1, { 0x3f }, false },
		{ "register too big", 3, { 0x05, 0x7f, 1 }, false },
		{ "restore without remember", 1, { 0x0b }, false },
		{ "remember too deep", 8, { 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a }, false },
		{ "number without end",
		  12,
		  { 0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80 },
		  false },
		{ "number cut", 2, { 0x0e, 0x80 }, false },
		{ "operand cut", 1, { 0x04 }, false },
		{ "expression beyond the section", 4, { 0x0f, 0xff, 0xff, 0x03 }, false },
		{ "expression of nearly 2^64",
		  11,
		  { 0x0f, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 },
		  false },
		{ "expression reads nowhere", 5, { 0x0f, 3, 0x08, 0x10, 0x06 }, true },
		{ "expression pops too much", 4, { 0x0f, 2, 0x13, 0x13 }, true },
		{ "expression adds nothing", 3, { 0x0f, 1, 0x22 }, true },
		{ "expression picks too deep", 4, { 0x0f, 2, 0x15, 0xff }, true },
		{ "expression never ends", 5, { 0x0f, 3, 0x2f, 0xfd, 0xff }, true },
		{ "expression fills its stack", 6, { 0x0f, 4, 0x12, 0x2f, 0xfc, 0xff }, true },
		{ "division by 0", 5, { 0x0f, 3, 0x31, 0x30, 0x1b }, true },
		{ "remainder of 0", 5, { 0x0f, 3, 0x31, 0x30, 0x1d }, true },
		{ "division of the smallest by -1",
		  14,
		  { 0x0f, 12, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b },
		  true },
		{ "no such register", 5, { 0x0f, 3, 0x92, 0x63, 0 }, true },
		{ "no such operation", 3, { 0x0f, 1, 0xe9 }, true },
		{ "CFA outside the stack", 6, { 0x0e, 0x80, 0x80, 0x80, 0x80, 0x04 }, true },
		{ "rbp outside the stack", 7, { 0x11, 6, 0x80, 0x80, 0x80, 0x80, 0x01 }, true },
	};
	struct cfi_row row;
	uint64_t registers[CFI_REGISTERS];
	int failed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cfi_section section = build(cases[i].code, cases[i].size);
		const enum cfi_result found = cfi_find_row(&section, function + 8, &row);
		const enum cfi_result stepped = step(&section, function + 8, registers);
		if ((found == CFI_FOUND) != cases[i].row_is_fine || stepped == CFI_FOUND) {
			print_message("%s: row %d, step %d\n", cases[i].name, found, stepped);
			failed++;
		}
	}
	assert_int_equal(failed, 0);
}

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Random bytes as instructions, and random damage to a section. A read outside the memory crashes, so the
 * test only checks that every call ends. */
static void test_random(void **state)
{
	const long count = test_rounds(300000);
	uint64_t results[CFI_BAD_READ + 1][2] = { { 0 } };
	uint64_t registers[CFI_REGISTERS];
	uint8_t code[64];
	struct cfi_row row;

	(void)state;
	random_state = test_seed(0x9e3779b97f4a7c15u);
	for (long round = 0; round < count; round++) {
		const size_t size = next_random() % sizeof(code);
		for (size_t i = 0; i < size; i++) {
			/* Often a small number, like most operands. */
			const uint64_t random = next_random();
			code[i] = random & 0x100 ? (uint8_t)random : (uint8_t)(random % 0x20);
		}
		struct cfi_section section = build(code, size);
		for (uint64_t damage = next_random() % 4; damage > 0 && (round & 1); damage--) {
			uint8_t *at =
				(uint8_t *)section.header + next_random() % (section.end - section.header);
			*at = (uint8_t)next_random();
		}
		const uintptr_t pc = function + next_random() % 64;
		results[cfi_find_row(&section, pc, &row)][0]++;
		results[step(&section, pc, registers)][1]++;
	}
	for (int i = 0; i <= CFI_BAD_READ; i++)
		print_message("result %d: %llu rows, %llu steps\n", i, (unsigned long long)results[i][0],
		              (unsigned long long)results[i][1]);
	/* The input is hostile, but these results must still occur. */
	assert_true(results[CFI_FOUND][0] > 1000 && results[CFI_MALFORMED][0] > 1000);
	assert_true(results[CFI_FOUND][1] > 100 && results[CFI_BAD_READ][1] > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_well_formed),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_random),
	};

	memory = make_guarded(4096);
	stack = make_guarded(4096);
	function = (uintptr_t)memory.start + 0x100000;
	return cmocka_run_group_tests_name("unwind information as input", tests, NULL, NULL);
}
