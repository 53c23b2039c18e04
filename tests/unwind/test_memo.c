/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on the memo: a stack differs from the previous stack only by the attack's change. After each
 * change, and after it is undone, the traces with and without the memo must be equal.
 *
 * The attacked stack is the interrupted stack. The handler changes its words in place, and returns only after
 * all words are restored.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../lib/thread_stack.h"
#include "base/code_map.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"

#define NO_SANITIZE __attribute__((no_sanitize("address", "thread", "undefined")))

/* Not static, so that the compiler does not assume who writes them. */
struct unwind_stack bounds;
struct unwind_memo *memo;
uint64_t with_memo[STACK_FRAMES_MAX], plain[STACK_FRAMES_MAX];
struct unwind_result seen;
uint64_t attacks, effects, differences;
void (*attack)(const ucontext_t *context);
uintptr_t first_frame; /* the thread's own variables are above it */
volatile int sink;

extern void frame_by_rbx(void (*callee)(void));
extern void frame_by_rax(void);

/* Unwinds with and without the memo, and counts a difference. */
static void compare_at_most(const ucontext_t *context, int max)
{
	const struct unwind_result a = unwind_addresses(context, &bounds, memo, with_memo, max);

	seen = unwind_addresses(context, &bounds, NULL, plain, max);
	attacks++;
	if (a.depth == seen.depth && a.truncated == seen.truncated &&
	    memcmp(with_memo, plain, (size_t)a.depth * sizeof(plain[0])) == 0)
		return;
	if (differences++ == 0)
		print_message("%d frames%s with the memo, %d%s without\n", a.depth,
		              a.truncated ? " truncated" : "", seen.depth,
		              seen.truncated ? " truncated" : "");
}

static void compare(const ucontext_t *context)
{
	compare_at_most(context, STACK_FRAMES_MAX);
}

static uint64_t whole[STACK_FRAMES_MAX];
static int whole_depth;

static void keep_whole(void)
{
	whole_depth = seen.depth;
	memcpy(whole, plain, sizeof(whole));
}

/* Counts an effect if the attack changed the stack as the unwinder sees it. */
static void count_effect(void)
{
	effects += seen.depth != whole_depth ||
	           memcmp(plain, whole, (size_t)whole_depth * sizeof(whole[0])) != 0;
}

/* --- one word of the stack -------------------------------------------------------- */

NO_SANITIZE static uint64_t other_value(int which, uint64_t value, const uint64_t *words, size_t count,
                                        size_t i)
{
	switch (which) {
	case 0: return 0;
	case 1: return value + 8;
	case 2: return value - 16;
	case 3: return value ^ 1;
	case 4: return words[(i + 2) % count]; /* often a word of the next frame */
	case 5: return (uint64_t)(uintptr_t)&words[(i + 20) % count];
	case 6: return (uint64_t)(uintptr_t)frame_by_rbx + 10;
	default: return whole[(i * 7) % (size_t)whole_depth] + 1;
	}
}

NO_SANITIZE static void attack_words(const ucontext_t *context)
{
	uint64_t *words = (uint64_t *)(context->uc_mcontext.gregs[REG_RSP] - 128);
	const size_t count = (first_frame - (uintptr_t)words) / 8;

	compare(context);
	keep_whole();
	for (size_t i = 0; i < count; i++) {
		const uint64_t value = words[i];
		for (int which = 0; which < 8; which++) {
			words[i] = other_value(which, value, words, count, i);
			compare(context);
			count_effect();
			/* Half of the changed stacks are unwound twice before the word is restored. */
			if (which % 2 == 0)
				compare(context);
			words[i] = value;
			compare(context);
		}
	}
}

/* --- one register ----------------------------------------------------------------- */

NO_SANITIZE static void attack_registers(const ucontext_t *context)
{
	static const int registers[] = {
		REG_RIP, REG_RSP, REG_RBP, REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
		REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};
	const uint64_t *words = (const uint64_t *)context->uc_mcontext.gregs[REG_RSP];
	ucontext_t changed = *context;

	compare(context);
	keep_whole();
	for (size_t r = 0; r < sizeof(registers) / sizeof(registers[0]); r++) {
		greg_t *at = &changed.uc_mcontext.gregs[registers[r]];
		for (int n = 0; n < 600; n++) {
			const greg_t was = *at;
			if (n < 128)
				*at = was + 8 * (n - 64);
			else if (n < 256)
				*at = was + (n - 192);
			else if (n < 512) /* a word of the stack as the frame */
				*at = (greg_t)(uintptr_t)(words + (n - 256));
			else
				*at = (greg_t)whole[(n - 512) % whole_depth];
			compare(&changed);
			count_effect();
			*at = was;
			compare(&changed);
		}
	}
}

/* --- limits of the request ----------------------------------------------------------- */

static void attack_limits(const ucontext_t *context)
{
	const struct unwind_stack all = bounds;

	compare(context);
	keep_whole();
	for (int max = 0; max <= whole_depth + 1; max++) {
		compare_at_most(context, max);
		count_effect();
		compare(context);
	}
	/* The same stack with an earlier end or a later start. */
	const uintptr_t used = all.end - (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
	for (uintptr_t less = 8; less < used; less += 8) {
		bounds.end = all.end - less;
		compare(context);
		count_effect();
		bounds = all;
		compare(context);
		bounds.start = (uintptr_t)context->uc_mcontext.gregs[REG_RSP] + 64 - less % 256;
		compare(context);
		bounds = all;
		compare(context);
	}
	/* Another map, for which all rules are computed again. */
	modules_refresh(true);
	compare(context);
}

/* --- stacks to attack ----------------------------------------------------------------- */

__attribute__((noinline)) static void stop_here(void)
{
	__asm__ volatile("int3" : : : "memory");
	sink++;
}

/* Its CFA is saved below rbp. The memo does not handle such a step. */
__attribute__((noinline)) static void realigned(void (*callee)(void))
{
	volatile char block[96] __attribute__((aligned(64)));
	volatile char *more = __builtin_alloca((size_t)1 + (sink & 7));

	block[sink & 7] = more[0] = 1;
	callee();
	sink += block[0] + more[0];
}

static void call_realigned(void)
{
	realigned(stop_here);
	sink++;
}

__attribute__((noinline)) static int recurse(int n, void (*callee)(void))
{
	int (*volatile self)(int, void (*)(void)) = recurse;

	if (n == 0)
		callee();
	else
		self(n - 1, callee);
	return sink++;
}

static int compare_in_sort(const void *a, const void *b)
{
	if (attack)
		recurse(6, stop_here);
	attack = NULL;
	return *(const int *)a - *(const int *)b;
}

static void sort(void)
{
	int numbers[] = { 3, 1, 2 };

	qsort(numbers, 3, sizeof(numbers[0]), compare_in_sort);
}

static void through_rbx(void)
{
	frame_by_rbx(stop_here);
	sink++;
}

static void interrupt(void)
{
	raise(SIGUSR1);
	sink++;
}

static void on_user_signal(int signal)
{
	sink += signal;
	recurse(3, stop_here);
}

static void (*const stacks[])(void) = {
	stop_here, call_realigned, sort, through_rbx, frame_by_rax, interrupt,
};

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	attack(context);
}

static void *run_stacks(void *argument)
{
	void (*const chosen)(const ucontext_t *) = (void (*)(const ucontext_t *))argument;

	bounds = thread_stack();
	first_frame = (uintptr_t)__builtin_frame_address(0) + 16;
	/* One memo for all stacks. Each stack begins with the memo of the previous one. */
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		attack = chosen;
		recurse(5, stacks[i]);
	}
	return NULL;
}

/* Runs on a thread, which has few frames of the C library at the bottom. */
static void run_attack(void (*chosen)(const ucontext_t *), uint64_t least_effects)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct sigaction user = { .sa_handler = on_user_signal };
	pthread_t thread;

	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGUSR1, &user, NULL);
	attacks = effects = differences = 0;
	memo = calloc(1, unwind_memo_bytes);
	assert_int_equal(pthread_create(&thread, NULL, run_stacks, (void *)chosen), 0);
	pthread_join(thread, NULL);
	free(memo);
	print_message("%llu traces, %llu changed by the attack, %llu wrong\n", (unsigned long long)attacks,
	              (unsigned long long)effects, (unsigned long long)differences);
	assert_int_equal(differences, 0);
	assert_true(effects >= least_effects);
}

static void test_words(void **state)
{
	(void)state;
	run_attack(attack_words, 500);
}

static void test_registers(void **state)
{
	(void)state;
	run_attack(attack_registers, 500);
}

static void test_limits(void **state)
{
	(void)state;
	run_attack(attack_limits, 50);
}

/* --- other calls at the same depth ------------------------------------------------------ */

#define LEVELS 10
static unsigned path;
static int level;

static void go_on(void);

/* Twins: equal frames, different return addresses. */
#define TWIN(name, n)                                                                                        \
	__attribute__((noinline)) static void name(void)                                                     \
	{                                                                                                    \
		go_on();                                                                                     \
		sink += n;                                                                                   \
	}
TWIN(left, 2)
TWIN(right, 3)

__attribute__((noinline)) static void go_on(void)
{
	if (level == LEVELS) {
		stop_here();
	} else if ((path >> level++ & 1) != 0) {
		right();
	} else {
		left();
	}
	sink++;
}

/* The number of frames of `right` must match the path. */
static void attack_path(const ucontext_t *context)
{
	static uintptr_t right_call;
	int rights = 0;

	compare(context);
	/* The trace is stop_here, then go_on and a twin alternately. */
	if (path == (1u << LEVELS) - 1)
		right_call = (uintptr_t)plain[2];
	for (int i = 0; i < LEVELS; i++)
		rights += with_memo[2 + 2 * i] == right_call;
	differences += rights != __builtin_popcount(path);
}

static void test_other_callers(void **state)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	char here;

	(void)state;
	sigaction(SIGTRAP, &action, NULL);
	bounds =
		(struct unwind_stack){ (uintptr_t)&here - (1 << 16), ((uintptr_t)&here & ~UINT64_C(7)) + 64 };
	memo = calloc(1, unwind_memo_bytes);
	attacks = differences = 0;
	attack = attack_path;
	for (unsigned n = 0; n < 1u << LEVELS; n++) {
		/* First the path with only `right`. Then every path in two orders: in Gray's order
		 * neighbours differ in one call, in numeric order in many. */
		for (int order = 0; order < 2; order++) {
			path = n == 0 ? (1u << LEVELS) - 1 : order != 0 ? n : n ^ n >> 1;
			level = 0;
			go_on();
		}
	}
	free(memo);
	assert_int_equal(attacks, 2u << LEVELS);
	assert_int_equal(differences, 0);
}

/* Runs with an empty memo, on a thread with a new stack. */
static void run_on_new_stack(void *(*run)(void *))
{
	const size_t size = 1 << 20;
	char *stack = calloc(1, size);
	pthread_attr_t attributes;
	pthread_t thread;

	memo = calloc(1, unwind_memo_bytes);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, size);
	bounds = (struct unwind_stack){ (uintptr_t)stack, (uintptr_t)stack + size };
	assert_int_equal(pthread_create(&thread, &attributes, run, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	free(stack);
	free(memo);
}

/* --- more frames than a trace holds ---------------------------------------------------------- */

static int left_to_go;

/* Its frames differ only in their addresses. */
__attribute__((noinline)) static void go_deep(void)
{
	void (*volatile self)(void) = go_deep;

	if (left_to_go-- == 0)
		stop_here();
	else
		self();
	sink++;
}

static void *run_deep(void *argument)
{
	static const int depths[] = { 300, 490, 600, 490, 520, 505, 515, 503, 900, 300 };
	static volatile unsigned n; /* not in a register, which would be saved in the frames */

	(void)argument;
	/* Each depth twice, because the second trace may come entirely from the memo. */
	for (n = 0; n < 2 * sizeof(depths) / sizeof(depths[0]); n++) {
		left_to_go = depths[n / 2];
		go_deep();
	}
	return NULL;
}

/* New frames push the memo's last frames out, so that the trace no longer reaches the bottom. */
static void test_deep(void **state)
{
	(void)state;
	attack = compare;
	attacks = differences = 0;
	run_on_new_stack(run_deep);
	assert_int_equal(attacks, 20);
	assert_int_equal(differences, 0);
}

/* --- the memo is used -------------------------------------------------------------------- */

static uint64_t misses_with, misses_without;

static uint64_t count_misses(const ucontext_t *context, struct unwind_memo *chosen)
{
	const uint64_t before = unwind_counter(UNWIND_CACHE_MISSES);

	memset(code_map_current()->rules, 0, unwind_cache_bytes);
	seen = unwind_addresses(context, &bounds, chosen, plain, STACK_FRAMES_MAX);
	return unwind_counter(UNWIND_CACHE_MISSES) - before;
}

static void watch_misses(const ucontext_t *context)
{
	compare(context);
	misses_with = count_misses(context, memo);
	misses_without = count_misses(context, NULL);
}

static void *run_watched(void *argument)
{
	(void)argument;
	attack = watch_misses;
	recurse(20, stop_here);
	return NULL;
}

/* The unwinder looks up no rule for an unchanged stack. */
static void test_used(void **state)
{
	(void)state;
	run_on_new_stack(run_watched);
	assert_true(seen.depth > 20 && !seen.truncated);
	assert_int_equal(misses_with, 0);
	assert_true(misses_without > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),  cmocka_unit_test(test_registers),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_other_callers),
		cmocka_unit_test(test_deep),   cmocka_unit_test(test_used),
	};

	if (modules_init() != 0)
		return 1;
	return cmocka_run_group_tests_name("the memo under attack", tests, NULL, NULL);
}
