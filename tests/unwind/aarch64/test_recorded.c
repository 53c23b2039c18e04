/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for aarch64 on this machine. The test walks recorded registers and stacks with the rules of
 * their recorded rows, both intact and damaged.
 *
 * QUERYPROF_TEST_SEED and QUERYPROF_TEST_ROUNDS set the seed and the number of rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handler/unwind/arch.h" /* CFI_FOR_AARCH64 is defined */

#define RECORDED_WORDS 760

struct recorded {
	const char *name;
	uint64_t registers[CFI_REGISTERS];
	/* The trace's frames, and the row in force at each. */
	struct {
		uint64_t pc;
		struct cfi_row row;
	} steps[16];
	int depth;
	uint64_t words[RECORDED_WORDS]; /* upwards from the interrupted sp */
	uint64_t word_count;
};

#include "recorded.h"
#include "../../lib/seed.h"

#define COUNT (sizeof(recordings) / sizeof(recordings[0]))

/* The copy of the stack. It ends at an inaccessible page, and another one is below it. */
static uint64_t *words;
static struct unwind_bounds bounds;
static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Moves an address in the recorded stack to the copy. */
static uint64_t relocate(const struct recorded *recorded, uint64_t value)
{
	const uint64_t sp = recorded->registers[CFI_STACK_POINTER];
	const uint64_t offset = value - sp;

	return offset <= recorded->word_count * 8 ? (uintptr_t)words + offset : value;
}

static int make_stack(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size = (RECORDED_WORDS * 8 + page - 1) & ~(page - 1);
	char *all = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (all == MAP_FAILED || mprotect(all + page, size, PROT_READ | PROT_WRITE) != 0)
		return -1;
	words = (uint64_t *)(void *)(all + page + size) - RECORDED_WORDS;
	return 0;
}

static struct unwind_frame load(const struct recorded *recorded)
{
	uint64_t registers[CFI_REGISTERS];

	for (uint64_t i = 0; i < recorded->word_count; i++)
		words[i] = relocate(recorded, recorded->words[i]);
	for (int i = 0; i < CFI_REGISTERS; i++)
		registers[i] = relocate(recorded, recorded->registers[i]);
	bounds = (struct unwind_bounds){ (uintptr_t)words, (uintptr_t)(words + recorded->word_count), NULL };
	return arch_frame_of(registers, registers[CFI_INSTRUCTION_POINTER]);
}

/* Steps like the slow walk if the rule alone is not enough. */
static enum rule_result step(rule_t rule, struct unwind_frame *frame, uintptr_t *fp_slot)
{
	const uintptr_t sp = frame->sp;

	if (rule_is_plain(rule))
		return rule_apply(rule, frame, &bounds, fp_slot);
	if (!rule_leaves_signal(rule))
		return rule_is_bottom(rule) ? RULE_AT_BOTTOM : RULE_LEADS_NOWHERE;
	return arch_signal_frame(frame, &bounds) && frame->sp > sp && frame->sp < bounds.high
	               ? RULE_STEPPED
	               : RULE_OUT_OF_BOUNDS;
}

static void test_whole(void **state)
{
	int links = 0, signed_ones = 0, signals = 0;

	(void)state;
	for (size_t r = 0; r < COUNT; r++) {
		const struct recorded *recorded = &recordings[r];
		struct unwind_frame frame = load(recorded);
		uintptr_t fp_slot;
		int i;

		for (i = 0; i < recorded->depth; i++) {
			const rule_t rule = rule_from_row(&recorded->steps[i].row);
			const struct unwind_frame before = frame;
			assert_true(frame.pc == recorded->steps[i].pc);
			const enum rule_result result = step(rule, &frame, &fp_slot);
			links += (rule & 15) == RULE_LINK;
			signals += rule_leaves_signal(rule);
			if (i == recorded->depth - 1) {
				assert_int_equal(result, RULE_AT_BOTTOM);
				break;
			}
			assert_int_equal(result, RULE_STEPPED);
			assert_true(frame.sp > before.sp || (rule & 15) == RULE_LINK);
			if (rule_is_plain(rule) && fp_slot != FP_SLOT_OPAQUE) {
				/* The memo will read it like this. */
				assert_true(arch_return_address(&frame) - 1 == frame.pc);
				signed_ones += *frame.slot != arch_return_address(&frame);
			}
		}
		print_message("%s: %d frames\n", recorded->name, i + 1);
	}
	print_message("%d return addresses in x30, %d signed ones, %d signal frames\n", links, signed_ones,
	              signals);
	assert_true(links >= (int)COUNT && signed_ones > 10 && signals == 2);
}

static void test_rows(void **state)
{
	const struct {
		struct cfi_row row;
		unsigned kind;
	} cases[] = {
		{ { .cfa_register = 31, .cfa_offset = 32, .return_address = { CFI_AT_CFA, -24 } }, RULE_SP },
		{ { .cfa_register = 29, .cfa_offset = 32, .return_address = { CFI_AT_CFA, -24 } }, RULE_FP },
		{ { .cfa_register = 31, .cfa_offset = 0 }, RULE_LINK },
		{ { .cfa_register = 29, .cfa_offset = 16 }, RULE_FULL },
		{ { .cfa_register = 19, .cfa_offset = 16, .return_address = { CFI_AT_CFA, -8 } }, RULE_FULL },
		{ { .cfa_register = 31, .cfa_offset = 32760, .return_address = { CFI_AT_CFA, -16376 } },
		  RULE_SP },
		{ { .cfa_register = 31, .cfa_offset = 32768, .return_address = { CFI_AT_CFA, -8 } },
		  RULE_FULL },
		{ { .cfa_register = 31, .cfa_offset = 32760, .return_address = { CFI_AT_CFA, -16384 } },
		  RULE_FULL },
		{ { .cfa_register = 31, .cfa_offset = 36, .return_address = { CFI_AT_CFA, -8 } }, RULE_FULL },
		{ { .cfa_register = 31, .cfa_offset = 32, .return_address = { CFI_AT_CFA, 8 } }, RULE_FULL },
		{ { .cfa_register = 31,
		    .cfa_offset = 32,
		    .return_address = { CFI_AT_CFA, -8 },
		    .frame_pointer = { CFI_AT_CFA, -32 } },
		  RULE_FULL },
		{ { .cfa_register = 31, .cfa_offset = 32, .return_address = { CFI_OTHERWISE, 0 } },
		  RULE_FULL },
		{ { .cfa_by_expression = true, .return_address = { CFI_AT_CFA, -8 } }, RULE_FULL },
		{ { .return_address = { CFI_UNDEFINED, 0 } }, RULE_BOTTOM },
		{ { .signal_frame = true }, RULE_SIGNAL },
	};
	struct unwind_frame frame = load(&recordings[0]);
	uintptr_t fp_slot;

	(void)state;
	assert_int_equal(CFI_SAME, 0); /* registers that the rows above omit are unchanged */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const rule_t rule = rule_from_row(&cases[i].row);
		print_message("%zu: %#llx\n", i, (unsigned long long)rule);
		assert_int_equal(rule & 15, cases[i].kind);
		assert_in_range(rule + ((rule_t)1 << (RULE_BITS - 1)), 0, (1 << RULE_BITS) - 1);
		if ((rule & 15) <= RULE_LINK)
			assert_int_equal(rule_offset(rule), cases[i].row.cfa_offset);
	}
	/* After a call, x30 is not the frame's return address. */
	frame.link = 0;
	assert_int_equal(rule_apply(rule_from_row(&cases[2].row), &frame, &bounds, &fp_slot),
	                 RULE_OUT_OF_BOUNDS);
}

/* A read outside the stack would crash here. */
static void test_damaged(void **state)
{
	const long count = test_rounds(200000);
	long results[RULE_OTHER_STACK + 1] = { 0 };

	(void)state;
	random_state = test_seed(0x9e3779b97f4a7c15u);
	for (long round = 0; round < count; round++) {
		const struct recorded *recorded = &recordings[next_random() % COUNT];
		struct unwind_frame frame = load(recorded);
		enum rule_result result;
		uintptr_t fp_slot;
		int i = 0;

		for (unsigned n = (unsigned)(next_random() % 8); n-- > 0;) {
			uint64_t *word =
				&words[next_random() % (next_random() % 2 ? 100 : recorded->word_count)];
			*word = next_random() % 2 ? next_random() : *word ^ UINT64_C(1) << next_random() % 64;
		}
		if (next_random() % 4 == 0)
			frame.sp ^= UINT64_C(1) << next_random() % 64;
		if (next_random() % 4 == 0)
			frame.fp += next_random() % 4096;
		if (next_random() % 4 == 0)
			frame.link = next_random() % 2 ? next_random() : 0;
		do {
			/* Sometimes uses a rule that was never made for this frame. */
			struct cfi_row row = recorded->steps[i].row;
			if (next_random() % 8 == 0)
				row.cfa_offset = (int32_t)(next_random() % 65536) - 32768;
			if (next_random() % 8 == 0)
				row.return_address.value = -(int64_t)(next_random() % 20000);
			if (next_random() % 16 == 0)
				row.signal_frame = true;
			const uintptr_t sp = frame.sp;
			result = step(rule_from_row(&row), &frame, &fp_slot);
			if (result == RULE_STEPPED) {
				assert_true(frame.sp >= sp);
				assert_true(row.signal_frame || frame.pc + 1 < UINT64_C(1) << ARCH_CODE_BITS);
			}
			i++;
		} while (result == RULE_STEPPED && i < recorded->depth);
		results[result]++;
	}
	print_message("%ld rounds: %ld to the end, %ld to the bottom, %ld out of bounds\n", count,
	              results[RULE_STEPPED], results[RULE_AT_BOTTOM], results[RULE_OUT_OF_BOUNDS]);
	assert_true(results[RULE_AT_BOTTOM] > count / 100 && results[RULE_OUT_OF_BOUNDS] > count / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests_name("aarch64's rules", tests, make_stack, NULL);
}
