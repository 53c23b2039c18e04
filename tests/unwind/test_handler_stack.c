/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack that the whole signal handler needs below the kernel's frame, as stated in queryprof.h. A
 * thread is sampled while its signals run on an alternate stack, which was painted before.
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
#include <time.h>

#include "queryprof.h"

#define STACK_BYTES (128u * 1024)
#define ROUNDS 40
#define PAINT 0x5a

extern void frame_by_rbx(void (*callee)(void)); /* frames.S: needs all registers */

static unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));
static uintptr_t kernel_frame; /* start of the kernel's frame, and end of the handler's stack */
static volatile int sink;

static void on_probe(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	kernel_frame = (uintptr_t)context - 8; /* the return address is before the ucontext */
}

/* Few instructions, which are all cached after the first samples. */
static void spin(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		uint64_t rounds = 2000000;
		__asm__ volatile("1:\n\tdec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 10000000);
	sink++;
}

static void dive(int n, bool odd)
{
	if (n > 0) {
		void (*volatile self)(int, bool) = dive;
		self(n - 1, odd);
	} else if (odd) {
		frame_by_rbx(spin);
	} else {
		spin();
	}
	sink++;
}

/* Returns the number of bytes written below the kernel's frame while a query ran. */
static size_t measure(bool odd)
{
	size_t lowest;

	memset(stack, PAINT, kernel_frame - (uintptr_t)stack);
	assert_int_equal(qp_query_begin(NULL), QP_OK);
	dive(20, odd);
	assert_int_equal(qp_query_end(0, NULL), QP_OK);
	for (lowest = 0; stack[lowest] == PAINT && (uintptr_t)&stack[lowest] < kernel_frame;)
		lowest++;
	return kernel_frame - (uintptr_t)&stack[lowest];
}

static void *run(void *argument)
{
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction probe = { .sa_sigaction = on_probe, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	size_t least[2] = { SIZE_MAX, SIZE_MAX }, most[2] = { 0, 0 };

	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	sigaction(SIGUSR1, &probe, NULL);
	raise(SIGUSR1);
	assert_true(kernel_frame > (uintptr_t)stack && kernel_frame < (uintptr_t)stack + sizeof(stack));
	for (int round = 0; round < ROUNDS; round++) {
		const bool odd = round % 4 == 0;
		const size_t used = measure(odd);
		if (used == 0)
			continue; /* no signal came */
		if (used < least[odd])
			least[odd] = used;
		if (used > most[odd])
			most[odd] = used;
	}
	print_message("plain frames: %zu to %zu bytes; with all registers: up to %zu\n", least[0], most[0],
	              most[1]);
	/* The handler ran, with the cache and with the parser. 4 KiB are promised, and other compilers
	 * need a little more. */
	assert_in_range(least[0], 64, 1024);
	assert_in_range(most[0], 64, 4096 - 512);
	assert_in_range(most[1], 64, 4096 - 512);
	return argument;
}

static void test_handler_stack(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(qp_init(NULL), QP_OK);
	assert_int_equal(qp_set(NULL, "query_profiler_real_time_period_ns", "1000000"), QP_OK);
	assert_int_equal(qp_set(NULL, "query_profiler_cpu_time_period_ns", "1000000"), QP_OK);
	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(qp_shutdown(), QP_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_handler_stack) };

	return cmocka_run_group_tests_name("the handler's stack", tests, NULL, NULL);
}
