/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads call three functions again and again while another thread patches these and restores them,
 * thousands of times. Each call must return the right value. Their first instructions are as short as
 * possible, so that a jump replaces several of them, and threads are often right after them.
 *
 * test_static_freeze [ROUNDS]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sqlite/static/freeze.h"
#include "sqlite/static/patch.h"
#include "sqlite/static/stub.h"

#define FUNCTIONS 3
#define THREADS 3
#define ROUNDS 2000
#define LONGEST_MS 2000 /* if each round is slow */
#define PATCHED_MIN 5

typedef uint64_t function(uint64_t);

/* Adds its argument and a constant. All other instructions are pushes, moves and pops. */
#define FUNCTION(name, number)                                                                               \
	function name;                                                                                       \
	__asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
	        "push %rbp\npush %rbx\nmov %rsp, %rbp\npush %rax\nmov %rdi, %rbx\n"                          \
	        "lea " #number "(%rbx), %rax\npop %rcx\npop %rbx\npop %rbp\nret\n"                           \
	        ".p2align 4\n.size " #name ", . - " #name "\n.popsection\n");

FUNCTION(function_1, 1)
FUNCTION(function_2, 2)
FUNCTION(function_3, 3)

static function *const functions[FUNCTIONS] = { function_1, function_2, function_3 };
static function *real[FUNCTIONS];
static uint64_t wrapped[FUNCTIONS]; /* relaxed atomics */
static volatile bool is_over;
static int rounds = ROUNDS;

/* The wrappers are in a section of their own, whose bounds the linker names. */
#define WRAPPER(name, number)                                                                                \
	__attribute__((section("wrapping"), noinline)) static uint64_t name(uint64_t value)                  \
	{                                                                                                    \
		__atomic_fetch_add(&wrapped[number], 1, __ATOMIC_RELAXED);                                   \
		return real[number](value);                                                                  \
	}

WRAPPER(wrapper_1, 0)
WRAPPER(wrapper_2, 1)
WRAPPER(wrapper_3, 2)

static function *const wrappers[FUNCTIONS] = { wrapper_1, wrapper_2, wrapper_3 };
extern char __start_wrapping[], __stop_wrapping[], __executable_start[], etext[], end[];

static struct {
	uint8_t before[FUNCTIONS][STUB_JUMP_MAX];
	struct patch_area area;
	int memory;
} now;

static void *call(void *wrong)
{
	function *volatile const *called = functions;

	for (uint64_t value = 0; !is_over; value++) {
		for (unsigned i = 0; i < FUNCTIONS; i++)
			*(uint64_t *)wrong += called[i](value) != value + i + 1;
		/* Outside for most of the time. Otherwise the threads would seldom all be outside. */
		for (volatile int i = 0; i < 50; i++)
			;
	}
	return NULL;
}

/* A handler, after which the thread returns to the interrupted instruction. */
static void on_signal(int number)
{
	struct timespec pause = { 0, 50000 };

	(void)number;
	nanosleep(&pause, NULL);
}

static const char *restore(void *context)
{
	(void)context;
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (pwrite(now.memory, now.before[i], STUB_JUMP_MAX, (off_t)(uintptr_t)functions[i]) !=
		    STUB_JUMP_MAX)
			return "not written";
	return NULL;
}

static bool patch_all(const struct static_object *object)
{
	struct patch_entry entries[FUNCTIONS];

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		entries[i] = (struct patch_entry){ "function", (uintptr_t)functions[i],
			                           (const void *)wrappers[i], (void **)&real[i], NULL };
		memcpy(now.before[i], (const void *)functions[i], STUB_JUMP_MAX);
	}
	return !patch_functions(object, entries, FUNCTIONS, freeze_others, &now.area);
}

/* No thread may be in the wrappers, or in the stubs, because the stubs are unmapped then. */
static bool restore_all(void)
{
	const struct static_range used[] = {
		{ (uintptr_t)__start_wrapping, (uintptr_t)__stop_wrapping },
		{ now.area.start, now.area.end },
		{ (uintptr_t)function_1, (uintptr_t)function_3 + 32 },
	};

	return !freeze_others(used, sizeof(used) / sizeof(*used), restore, NULL);
}

static int64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static uint64_t sum_wrapped(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < FUNCTIONS; i++)
		sum += __atomic_load_n(&wrapped[i], __ATOMIC_RELAXED);
	return sum;
}

static void threads_go_on(void **state)
{
	const struct static_object object = {
		.image = { (uintptr_t)__executable_start, (uintptr_t)end },
		.code = { (uintptr_t)__executable_start, (uintptr_t)etext },
	};
	const int64_t start = now_ms();
	uint64_t wrong[THREADS] = { 0 };
	pthread_t threads[THREADS];
	int patched = 0, refused = 0;

	(void)state;
	now.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call, &wrong[i]), 0);
	for (int i = 0; i < rounds && (now_ms() - start < LONGEST_MS || patched < PATCHED_MIN); i++) {
		uint64_t before = sum_wrapped();

		pthread_kill(threads[i % THREADS], SIGUSR1);
		if (!patch_all(&object)) {
			refused++;
			continue;
		}
		patched++;
		while (sum_wrapped() - before < 100)
			sched_yield();
		while (!restore_all())
			refused++;
		patch_free_area(&now.area);
	}
	is_over = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(wrong[i], 0);
	}
	close(now.memory);
	printf("patched %d times in %ld ms, refused %d times; %lu calls by wrappers\n", patched,
	       (long)(now_ms() - start), refused, sum_wrapped());
	assert_true(patched >= PATCHED_MIN);
}

/* A thread that sleeps in a callee of a function of the range counts as inside, too. The code must not change
 * before it returns. */
static volatile bool is_inside;

static void *stay(void *unused)
{
	is_inside = true;
	while (!is_over)
		usleep(1000);
	return unused;
}

static const char *never(void *called)
{
	*(bool *)called = true;
	return NULL;
}

static void who_is_inside_is_waited_for(void **state)
{
	const struct static_range range = { (uintptr_t)stay, (uintptr_t)stay + 64 };
	pthread_t thread;
	bool called = false;

	(void)state;
	is_over = false;
	assert_int_equal(pthread_create(&thread, NULL, stay, NULL), 0);
	while (!is_inside)
		sched_yield();
	assert_non_null(freeze_others(&range, 1, never, &called));
	assert_false(called);
	is_over = true;
	pthread_join(thread, NULL);
	assert_null(freeze_others(&range, 1, never, &called));
	assert_true(called);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(threads_go_on),
		                            cmocka_unit_test(who_is_inside_is_waited_for) };

	if (argc > 1)
		rounds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
