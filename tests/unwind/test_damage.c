/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hundreds of thousands of randomly damaged stacks and registers.
 *
 * A real stack is copied between two inaccessible pages. Words and registers are changed and restored, and
 * every unwinding must end within bounds. Each round unwinds with and without the memo. The memo must never
 * make a difference, whatever changed since the previous round. Some rounds also treat it as an unknown
 * stack. A trace that is complete with bounds must be the same without.
 *
 * QUERYPROF_TEST_SEED and QUERYPROF_TEST_ROUNDS set the seed and the number of rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "../lib/thread_stack.h"
#include "base/code_map.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"
#include "../lib/seed.h"

#define MAX_WORDS (1024u * 1024)
#define MAX_DAMAGE 6

/* A stack without bounds is read by system calls, which takes ten times as long. */
#define UNKNOWN_EVERY 16

/* The copy: `words` of stack, and the registers for it. */
static uint64_t *words, *whole_words;
static size_t word_count;
static ucontext_t registers;
static uintptr_t original_sp, original_end;

static uint64_t random_state;
static volatile int sink;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t relocate(uint64_t value)
{
	if (value < original_sp || value > original_end)
		return value;
	return value - original_end + (uintptr_t)(words + word_count);
}

/* Copies the stack from the red zone on, including sanitizers' fences. Values that look like addresses in
 * the stack are relocated, so that frames by rbp work in the copy. */
__attribute__((no_sanitize("address", "thread"))) static void on_signal(int signal, siginfo_t *info,
                                                                        void *context)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)signal;
	(void)info;
	memcpy(&registers, context, sizeof(registers));
	original_sp = (uintptr_t)registers.uc_mcontext.gregs[REG_RSP] - 128;
	word_count = (original_end - original_sp) / 8;
	if (word_count > MAX_WORDS)
		word_count = MAX_WORDS;
	const size_t size = (word_count * 8 + page - 1) & ~(page - 1);
	char *all = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED || mprotect(all + page, size, PROT_READ | PROT_WRITE) != 0)
		abort();
	words = (uint64_t *)(void *)(all + page + size) - word_count;
	whole_words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (whole_words == MAP_FAILED)
		abort();
	for (size_t i = 0; i < word_count; i++)
		words[i] = whole_words[i] = relocate(((const uint64_t *)original_sp)[i]);
	for (int i = 0; i < NGREG; i++)
		registers.uc_mcontext.gregs[i] = (greg_t)relocate((uint64_t)registers.uc_mcontext.gregs[i]);
}

__attribute__((noinline)) static int dive(int n)
{
	int (*volatile self)(int) = dive;
	volatile char room[64 + 16];

	room[n % 80] = (char)n;
	if (n == 0)
		__asm__ volatile("int3" : : : "memory");
	else
		self(n - 1);
	return sink += room[n % 80];
}

static void dive_below(void)
{
	dive(12);
	sink++;
}

/* frames.S: steps with all registers, which the memo must not trust. */
extern void frame_by_rbx(void (*callee)(void));

__attribute__((noinline)) static void dive_above(int n)
{
	void (*volatile self)(int) = dive_above;

	if (n == 0)
		frame_by_rbx(dive_below);
	else
		self(n - 1);
	sink++;
}

__attribute__((noinline)) static int compare_and_dive(const void *a, const void *b)
{
	if (words == NULL)
		dive_above(12);
	return *(const int *)a - *(const int *)b;
}

static void *make_stack(void *argument)
{
	int numbers[] = { 3, 1, 2 };

	original_end = thread_stack().end;
	qsort(numbers, 3, sizeof(numbers[0]), compare_and_dive);
	return argument;
}

/* The address to which a signal handler returns. The frame above it is a full set of registers, on any
 * stack. */
static uint64_t trampoline;

static void find_trampoline(void)
{
	struct {
		void *handler;
		unsigned long flags;
		uint64_t restorer, mask;
	} action;

	if (syscall(SYS_rt_sigaction, SIGTRAP, NULL, &action, sizeof(action.mask)) == 0)
		trampoline = action.restorer;
}

/* A function in which an exception can land (handler/unwind/distrust.h). */
static uint64_t lander;
#define LANDER_BYTES 0x1d0

static uint64_t random_code(void)
{
	if (next_random() % 2)
		return lander != 0 && next_random() % 2 ? lander + next_random() % LANDER_BYTES : trampoline;
	const struct code_map *map = code_map_current();
	const struct code_range *range = &map->ranges[next_random() % map->count];

	return range->start + next_random() % (range->end - range->start);
}

static uint64_t damage(uint64_t value)
{
	const uintptr_t start = (uintptr_t)words, size = word_count * 8;

	switch (next_random() % 8) {
	case 0: return next_random();
	case 1: return next_random() % 5000;
	case 2: return random_code();
	case 3: return start + (next_random() % size & ~UINT64_C(7));
	case 4: return start + size - 64 + next_random() % 128;
	case 5: return words[next_random() % word_count];
	case 6: return value + 8 * (next_random() % 16) - 64;
	default: return value ^ UINT64_C(1) << next_random() % 64;
	}
}

static bool is_same(const struct unwind_result *one, const uint64_t *trace, const struct unwind_result *other,
                    const uint64_t *other_trace)
{
	return one->depth == other->depth && one->truncated == other->truncated &&
	       memcmp(trace, other_trace, (size_t)one->depth * sizeof(trace[0])) == 0;
}

static void test_damaged_stacks(void **state)
{
	const long count = test_rounds(300000);
	static uint64_t trace[STACK_FRAMES_MAX + 1], plain_trace[STACK_FRAMES_MAX + 1];
	static uint64_t unknown_trace[STACK_FRAMES_MAX + 1];
	/* No known stack, or another stack. */
	const struct unwind_stack elsewhere[2] = {
		{ 0, 0 }, { (uintptr_t)whole_words, (uintptr_t)(whole_words + word_count) }
	};
	struct unwind_memo *memo = calloc(1, unwind_memo_bytes);
	const ucontext_t whole = registers;
	uint64_t complete = 0, deep = 0, differs = 0, unknown_complete = 0, unknown_differs = 0;

	/* The limit for a single frame of an unknown stack. */
	const bool comparable = word_count * 8 <= 256 * 1024;

	(void)state;
	random_state = test_seed(0x9e3779b97f4a7c15u);
	print_message("%zu words of stack\n", word_count);
	const struct unwind_stack stack = { (uintptr_t)words, (uintptr_t)(words + word_count) };
	const struct unwind_result first =
		unwind_addresses(&whole, &stack, NULL, plain_trace, STACK_FRAMES_MAX);
	assert_false(first.truncated);
	assert_true(first.depth > 28);
	const uint64_t full_steps = unwind_counter(UNWIND_FULL_STEPS);

	for (long round = 0; round < count; round++) {
		size_t at[MAX_DAMAGE];
		uint64_t was[MAX_DAMAGE];
		const int changes = (int)(next_random() % (MAX_DAMAGE + 1));

		registers = whole;
		for (int i = 0; i < changes; i++) {
			at[i] = next_random() % word_count;
			was[i] = words[at[i]];
			words[at[i]] = damage(was[i]);
		}
		if (next_random() % 4 == 0) {
			static const int which[] = { REG_RIP, REG_RIP, REG_RSP, REG_RBP, REG_RBX, REG_RDI };
			const int reg = which[next_random() % 6];
			uint64_t value = (uint64_t)registers.uc_mcontext.gregs[reg];
			value = reg == REG_RIP && next_random() % 2 ? random_code() : damage(value);
			registers.uc_mcontext.gregs[reg] = (greg_t)value;
		}
		trace[STACK_FRAMES_MAX] = plain_trace[STACK_FRAMES_MAX] = 77;
		unknown_trace[STACK_FRAMES_MAX] = 77;
		const int max = next_random() % 8 ? STACK_FRAMES_MAX : (int)(next_random() % 40);
		struct unwind_result with = unwind_addresses(&registers, &stack, memo, trace, max);
		struct unwind_result plain = unwind_addresses(&registers, &stack, NULL, plain_trace, max);

		assert_in_range(plain.depth, max > 0, max);
		assert_int_equal(trace[STACK_FRAMES_MAX], 77);
		if (max > 0)
			assert_true(plain_trace[0] == (uint64_t)registers.uc_mcontext.gregs[REG_RIP]);
		if (!is_same(&with, trace, &plain, plain_trace) && differs++ == 0)
			print_message("round %ld: %d frames%s with the memo, %d%s without\n", round,
			              with.depth, with.truncated ? " truncated" : "", plain.depth,
			              plain.truncated ? " truncated" : "");
		if (round % UNKNOWN_EVERY == 0) {
			struct unwind_result unknown = unwind_addresses(
				&registers, &elsewhere[round / UNKNOWN_EVERY % 2], NULL, unknown_trace, max);
			const uintptr_t sp = (uintptr_t)registers.uc_mcontext.gregs[REG_RSP];

			assert_in_range(unknown.depth, max > 0, max);
			assert_int_equal(unknown_trace[STACK_FRAMES_MAX], 77);
			unknown_complete += !unknown.truncated;
			if (comparable && sp >= stack.start && sp < stack.end && !plain.truncated &&
			    !is_same(&unknown, unknown_trace, &plain, plain_trace) && unknown_differs++ == 0)
				print_message("round %ld: %d frames%s as an unknown stack, %d with bounds\n",
				              round, unknown.depth, unknown.truncated ? " truncated" : "",
				              plain.depth);
		}
		complete += !plain.truncated;
		deep += plain.depth > 20;
		/* Usually the damage is undone before the next round. */
		for (int i = next_random() % 4 != 0 ? changes : 0; i-- > 0;)
			words[at[i]] = was[i];
		if (round % 64 == 63) /* and sometimes all damage is undone */
			memcpy(words, whole_words, word_count * sizeof(words[0]));
	}
	print_message("%ld rounds: %llu complete, %llu deep, %llu full steps, no rule %llu, bad reads %llu\n",
	              count, (unsigned long long)complete, (unsigned long long)deep,
	              (unsigned long long)(unwind_counter(UNWIND_FULL_STEPS) - full_steps),
	              (unsigned long long)unwind_counter(UNWIND_NO_RULE),
	              (unsigned long long)unwind_counter(UNWIND_BAD_READ));
	print_message("as unknown stacks: %llu complete\n", (unsigned long long)unknown_complete);
	assert_int_equal(differs, 0);
	assert_int_equal(unknown_differs, 0);
	/* The input is hostile, but these results must still occur. */
	assert_true(complete > (uint64_t)count / 100 && deep > (uint64_t)count / 100);
	free(memo);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_damaged_stacks) };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	pthread_t thread;

	void *const runtime = dlopen("libgcc_s.so.1", RTLD_NOW);
	lander = runtime ? (uintptr_t)dlsym(runtime, "_Unwind_Resume") : 0;
	if (modules_init() != 0)
		return 1;
	sigaction(SIGTRAP, &action, NULL);
	find_trampoline();
	pthread_create(&thread, NULL, make_stack, NULL);
	pthread_join(thread, NULL);
	return cmocka_run_group_tests_name("damaged stacks", tests, NULL, NULL);
}
