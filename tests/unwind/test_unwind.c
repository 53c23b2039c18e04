/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding stacks that the test builds itself: signals, threads, callbacks, coroutines, functions with odd
 * or missing unwind information.
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
#include <ucontext.h>

#include "../lib/thread_stack.h"
#include "base/code_map.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"

extern void frame_without_information(void (*callee)(void));
extern void frame_by_rbx(void (*callee)(void));
extern void frame_by_rax(void);
extern void frame_with_value(void (*callee)(void));
extern void frame_with_memory(void);
extern void frame_restored(void);
extern void frame_at_bottom(void);
extern void frame_landing_soon(void (*callee)(void));
extern void frame_landing_later(void (*callee)(void));
extern void frame_released_early(void (*callee)(void));
extern void frame_taken_early(void (*callee)(void));

/* The signal handler's arguments and results. Not static, because the compiler would assume that no call
 * changes them. It does not know of the handler. */
uint64_t trace[STACK_FRAMES_MAX];
struct unwind_result seen;
struct unwind_stack bounds;
struct unwind_memo *memo;
int max_frames;
uint64_t plain_trace[STACK_FRAMES_MAX];
int memo_differs;
static volatile int sink;

/* Visible to dladdr(). */
#define SEEN __attribute__((noinline, visibility("default")))

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	memset(trace, 0xee, sizeof(trace));
	seen = unwind_addresses(context, &bounds, memo, trace, max_frames);
	if (memo) {
		struct unwind_result plain =
			unwind_addresses(context, &bounds, NULL, plain_trace, max_frames);
		memo_differs += plain.depth != seen.depth || plain.truncated != seen.truncated ||
		                memcmp(plain_trace, trace, (size_t)plain.depth * sizeof(trace[0])) != 0;
	}
}

/* Takes a trace at this point. int3 instead of raise() avoids frames of libc. */
void take_trace(void);
SEEN void take_trace(void)
{
	__asm__ volatile("int3" : : : "memory");
	sink++;
}

/* Returns whether the code at `address` belongs to the function with this name. The program is linked with
 * -rdynamic. */
static bool is_named(uint64_t address, const char *name)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)address, &info) != 0 && info.dli_sname &&
	       strcmp(info.dli_sname, name) == 0;
}

static void print_trace(void)
{
	for (int i = 0; i < seen.depth; i++) {
		Dl_info info = { 0 };
		dladdr((void *)(uintptr_t)trace[i], &info);
		print_message("  %2d %#llx %s in %s\n", i, (unsigned long long)trace[i],
		              info.dli_sname ? info.dli_sname : "?", info.dli_fname ? info.dli_fname : "?");
	}
	print_message("  %d frames%s, bad reads %llu, no rule %llu\n", seen.depth,
	              seen.truncated ? ", truncated" : "",
	              (unsigned long long)unwind_counter(UNWIND_BAD_READ),
	              (unsigned long long)unwind_counter(UNWIND_NO_RULE));
}

static int setup(void **state)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	(void)state;
	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	memo = NULL;
	bounds = thread_stack();
	max_frames = STACK_FRAMES_MAX;
	return 0;
}

#define expect(condition)                                                                                    \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			print_trace();                                                                       \
		assert_true(condition);                                                                      \
	} while (0)

int own_recursion(int n);
SEEN int own_recursion(int n)
{
	if (n == 0)
		take_trace();
	else
		own_recursion(n - 1);
	return sink++; /* no tail call */
}

/* Returns the number of consecutive frames of own_recursion in the trace, beginning at `from`. */
static int count_recursion(int from)
{
	int count = 0;
	while (from + count < seen.depth && is_named(trace[from + count], "own_recursion"))
		count++;
	return count;
}

static void test_main_thread(void **state)
{
	(void)state;
	own_recursion(30);
	expect(seen.depth > 33 && !seen.truncated);
	expect(is_named(trace[0], "take_trace"));
	expect(count_recursion(1) == 31);
	expect(is_named(trace[seen.depth - 1], "_start"));
	expect(seen.generation == modules_generation());
}

void *in_thread(void *argument);
SEEN void *in_thread(void *argument)
{
	bounds = thread_stack();
	own_recursion(3);
	return argument;
}

static void test_other_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	expect(!seen.truncated);
	expect(count_recursion(1) == 4);
	expect(is_named(trace[5], "in_thread"));
}

int compare_and_trace(const void *a, const void *b);
SEEN int compare_and_trace(const void *a, const void *b)
{
	take_trace();
	return *(const int *)a - *(const int *)b;
}

void test_callback(void **state);
SEEN void test_callback(void **state)
{
	int numbers[] = { 3, 1, 2 };

	(void)state;
	qsort(numbers, 3, sizeof(numbers[0]), compare_and_trace);
	expect(!seen.truncated && seen.depth > 5);
	expect(is_named(trace[1], "compare_and_trace"));
	int inside = 0;
	while (inside + 2 < seen.depth && !is_named(trace[2 + inside], "test_callback"))
		inside++;
	expect(inside >= 1 && inside + 2 < seen.depth);
}

void raise_inside(int signal);
SEEN void raise_inside(int signal)
{
	sink += signal;
	raise(SIGUSR2);
	sink++;
}

static void test_signal_frame(void **state)
{
	struct sigaction outer = { .sa_handler = raise_inside };
	uintptr_t at;
	int i;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* it delivers the inner signal later, outside the outer one's handler */
#endif
	sigaction(SIGTRAP, &outer, NULL);
	__asm__ volatile("lea 1f(%%rip), %0\n\tint3\n1:" : "=r"(at) : : "memory");
	expect(!seen.truncated);
	for (i = 0; i < seen.depth && !is_named(trace[i], "raise_inside"); i++)
		continue;
	/* raise_inside, the trampoline (a sanitizer has frames of its own there), and the interrupted
	 * address: the address after int3, not minus one. */
	for (i += 2; i < seen.depth && trace[i] != at; i++)
		continue;
	expect(i < seen.depth);
	expect(is_named(trace[seen.depth - 1], "_start"));
}

static ucontext_t coroutine, caller;

static void in_coroutine(void)
{
	own_recursion(2);
}

static void test_coroutine(void **state)
{
	static char stack[64 * 1024];

	(void)state;
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof(stack);
	coroutine.uc_link = &caller;
	makecontext(&coroutine, in_coroutine, 0);

	/* With the thread's bounds, the coroutine's stack is unknown. */
	swapcontext(&caller, &coroutine);
	expect(!seen.truncated && count_recursion(1) == 3);

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof(stack);
	coroutine.uc_link = &caller;
	makecontext(&coroutine, in_coroutine, 0);
	bounds = (struct unwind_stack){ (uintptr_t)stack, (uintptr_t)stack + sizeof(stack) };
	swapcontext(&caller, &coroutine);
	expect(!seen.truncated && count_recursion(1) == 3);
	bounds = thread_stack();
}

static void test_no_information(void **state)
{
	uint64_t before = unwind_counter(UNWIND_NO_RULE);

	(void)state;
	frame_without_information(take_trace);
	/* take_trace and its call are known, and nothing is guessed. If take_trace keeps a frame pointer,
	 * as with a sanitizer, the trace may continue to the caller. */
	expect(is_named(trace[1], "frame_without_information"));
	if (seen.truncated) {
		expect(seen.depth == 2);
		assert_int_equal(unwind_counter(UNWIND_NO_RULE), before + 1);
	} else {
		expect(is_named(trace[seen.depth - 1], "_start"));
	}
}

/* If the call that copies the registers is not recognised, a trace ends near the end of such a function,
 * and nowhere else (handler/unwind/distrust.h). */
void test_unknown_landing(void **state);
SEEN void test_unknown_landing(void **state)
{
	(void)state;
	frame_landing_soon(take_trace);
	expect(seen.truncated && seen.depth == 2 && is_named(trace[1], "frame_landing_soon"));
	frame_landing_later(take_trace);
	expect(!seen.truncated && is_named(trace[1], "frame_landing_later"));
	expect(is_named(trace[2], "test_unknown_landing"));
}

static void before_move(void)
{
	take_trace();
	expect(!seen.truncated &&
	       (is_named(trace[2], "frame_released_early") || is_named(trace[2], "frame_taken_early")));
	expect(is_named(trace[3], "test_moved"));
}

/* If the stack pointer has moved but the unwind information does not show it, the trace ends. Before the
 * move it does not end. */
void test_moved(void **state);
SEEN void test_moved(void **state)
{
	(void)state;
	frame_released_early(before_move);
	expect(seen.truncated && seen.depth == 1 && is_named(trace[0], "frame_released_early"));
	frame_taken_early(before_move);
	expect(seen.truncated && seen.depth == 1 && is_named(trace[0], "frame_taken_early"));
}

/* Code as a JIT compiler writes it: sub $24,%rsp; call *%rdi; add $24,%rsp; ret */
static const uint8_t made_code[] = { 0x48, 0x83, 0xec, 0x18, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x18, 0xc3 };
#define MADE_RETURN 6

static void in_made_code(void)
{
	own_recursion(3);
	sink++; /* no tail call */
}

/* The return address into such code is exact, and is the last one known. */
static void test_made_code(void **state)
{
	void *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call)(void (*)(void)) = (void (*)(void (*)(void)))(uintptr_t)page;
	uint64_t before;

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	memcpy(page, made_code, sizeof(made_code));
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	for (int round = 0; round < 6; round++) {
		/* Two rounds each: on the known stack, with the memo, and on an unknown stack. */
		if (round == 2)
			memo = calloc(1, unwind_memo_bytes);
		if (round == 4)
			bounds = (struct unwind_stack){ 0, 0 };
		before = unwind_counter(UNWIND_NO_RULE);
		call(in_made_code);
		expect(count_recursion(1) == 4 && trace[6] == (uintptr_t)page + MADE_RETURN - 1);
		/* Such code is assumed to keep frame pointers. This code does not. If the caller does, as
		 * in a sanitizer's build, the trace continues after it. */
		if (seen.truncated)
			expect(seen.depth == 7 && unwind_counter(UNWIND_NO_RULE) > before);
		else
			expect(is_named(trace[seen.depth - 1], "_start"));
	}
	expect(memo_differs == 0);
	bounds = thread_stack();
	free(memo);
	memo = NULL;
	munmap(page, 4096);
}

void test_odd_frames(void **state);
SEEN void test_odd_frames(void **state)
{
	uint64_t before = unwind_counter(UNWIND_FULL_STEPS);

	(void)state;
	frame_by_rbx(take_trace);
	expect(!seen.truncated && is_named(trace[1], "frame_by_rbx"));
	expect(is_named(trace[2], "test_odd_frames"));
	expect(unwind_counter(UNWIND_FULL_STEPS) > before);
	frame_by_rax();
	expect(!seen.truncated && is_named(trace[0], "frame_by_rax"));
	expect(is_named(trace[1], "test_odd_frames"));
	frame_with_value(take_trace);
	expect(!seen.truncated && is_named(trace[2], "frame_with_value"));
	expect(is_named(trace[3], "test_odd_frames"));
	frame_with_memory();
	expect(!seen.truncated && is_named(trace[0], "frame_with_memory"));
	frame_restored();
	expect(!seen.truncated && is_named(trace[0], "frame_restored"));
	frame_at_bottom();
	expect(!seen.truncated && seen.depth == 1);
}

static void test_bounds(void **state)
{
	(void)state;
	bounds = (struct unwind_stack){ 0, 0 };
	take_trace();
	expect(!seen.truncated && is_named(trace[0], "take_trace"));
	expect(is_named(trace[seen.depth - 1], "_start"));

	/* The bounds end too early. The frames within the bounds are returned. */
	bounds = thread_stack();
	bounds.end = (uintptr_t)__builtin_frame_address(0) - 8;
	own_recursion(5);
	expect(seen.depth >= 6 && seen.depth < 12 && seen.truncated);
}

static void test_limit(void **state)
{
	(void)state;
	own_recursion(10);
	const int whole = seen.depth;
	for (int limit = 0; limit <= whole + 1; limit++) {
		max_frames = limit;
		own_recursion(10);
		expect(seen.depth == (limit < whole ? limit : whole));
		expect(seen.truncated == (limit < whole));
		assert_true(trace[seen.depth] == UINT64_C(0xeeeeeeeeeeeeeeee));
	}
	max_frames = STACK_FRAMES_MAX;
	own_recursion(1000);
	expect(seen.depth == STACK_FRAMES_MAX && seen.truncated);
}

/* Once cached, a stack needs no parser, and the memo changes nothing. */
static void test_cache_and_memo(void **state)
{
	(void)state;
	for (int warm = 0; warm < 2; warm++) {
		const uint64_t misses = unwind_counter(UNWIND_CACHE_MISSES);
		memo = warm ? calloc(1, unwind_memo_bytes) : NULL;
		memo_differs = 0;
		for (int round = 0; round < 300; round++) {
			own_recursion((round * 37) % 200);
			expect(!seen.truncated);
			expect(count_recursion(1) == (round * 37) % 200 + 1);
		}
		assert_int_equal(memo_differs, 0);
		if (warm)
			assert_int_equal(unwind_counter(UNWIND_CACHE_MISSES), misses);
	}
	free(memo);
	memo = NULL;
}

/* Returns the bytes of stack that one trace needs: the part that was overwritten below this frame. */
__attribute__((noinline)) static size_t measure_stack(const void *context)
{
	enum { SPAN = 16384 };
	const uint64_t pattern = UINT64_C(0x5aa5c33cdeadbeef);
	volatile uint64_t *here;

	__asm__ volatile("movq %%rsp, %0" : "=r"(here));
	for (int i = 32; i < SPAN / 8; i++)
		here[-i] = pattern;
	seen = unwind_addresses(context, &bounds, memo, trace, STACK_FRAMES_MAX);
	for (int i = SPAN / 8 - 1; i >= 32; i--)
		if (here[-i] != pattern)
			return (size_t)i * 8;
	return 0;
}

size_t stack_missed, stack_cached;

static void on_measured(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	/* With an empty cache, every frame needs the parser. */
	memset(code_map_current()->rules, 0, unwind_cache_bytes);
	stack_missed = measure_stack(context);
	stack_cached = measure_stack(context);
}

/* The limits that unwind.h promises. */
static void test_stack_use(void **state)
{
	struct sigaction action = { .sa_sigaction = on_measured, .sa_flags = SA_SIGINFO };

	(void)state;
	sigaction(SIGTRAP, &action, NULL);
	own_recursion(30);
	print_message("plain frames: %zu bytes with the parser, %zu from the cache\n", stack_missed,
	              stack_cached);
	expect(!seen.truncated);
	assert_in_range(stack_cached, 64, 1024);
	assert_in_range(stack_missed, 64, 4096);
	frame_by_rbx(take_trace);
	print_message("with all registers: %zu bytes\n", stack_cached);
	expect(!seen.truncated);
	assert_in_range(stack_cached, 64, 4096);
	bounds = (struct unwind_stack){ 0, 0 };
	own_recursion(30);
	print_message("unknown stack: %zu bytes with the parser, %zu from the cache\n", stack_missed,
	              stack_cached);
	expect(!seen.truncated);
	assert_in_range(stack_cached, 64, 1536);
	assert_in_range(stack_missed, 64, 4096);
	frame_by_rbx(take_trace);
	print_message("unknown stack with all registers: %zu bytes\n", stack_cached);
	expect(!seen.truncated);
	assert_in_range(stack_cached, 64, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_main_thread, setup),
		cmocka_unit_test_setup(test_other_thread, setup),
		cmocka_unit_test_setup(test_callback, setup),
		cmocka_unit_test_setup(test_signal_frame, setup),
		cmocka_unit_test_setup(test_coroutine, setup),
		cmocka_unit_test_setup(test_no_information, setup),
		cmocka_unit_test_setup(test_unknown_landing, setup),
		cmocka_unit_test_setup(test_moved, setup),
		cmocka_unit_test_setup(test_made_code, setup),
		cmocka_unit_test_setup(test_odd_frames, setup),
		cmocka_unit_test_setup(test_bounds, setup),
		cmocka_unit_test_setup(test_limit, setup),
		cmocka_unit_test_setup(test_cache_and_memo, setup),
		cmocka_unit_test_setup(test_stack_use, setup),
	};

	if (modules_init() != 0)
		return 1;
	return cmocka_run_group_tests_name("unwinding", tests, NULL, NULL);
}
