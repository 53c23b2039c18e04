/*
 * What a frame costs, inside a handler, over the same stacks in one process:
 * printed as ratios to a frame-pointer walk, the practical limit. Not a test: run
 * it by hand on a quiet machine.
 *
 *   ninja bench_unwind && tests/unwind/bench_unwind
 */
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "handler/record.h"
#include "handler/unwind.h"
#include "modules/modules.h"

#define ROUNDS 2000
#define REPEATS 9

static struct unwind_stack stack;
static struct unwind_memo *memo;
static uint64_t trace[TRACE_MAX_FRAMES];
static void *addresses[TRACE_MAX_FRAMES];
static volatile int sink;

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The program is built with frame pointers; libc at the bottom is not. */
static int walk_frame_pointers(const void *context)
{
	const ucontext_t *at = context;
	uintptr_t fp = (uintptr_t)at->uc_mcontext.gregs[REG_RBP];
	uintptr_t low = (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
	int n = 0;

	trace[n++] = (uint64_t)at->uc_mcontext.gregs[REG_RIP];
	while (fp >= low && fp < stack.end - 16 && fp % 8 == 0 && n < TRACE_MAX_FRAMES) {
		const uintptr_t *frame = (const uintptr_t *)fp;
		if (frame[1] == 0)
			break;
		trace[n++] = frame[1];
		low = fp + 16;
		fp = frame[0];
	}
	return n;
}

static int walk_rules(const void *context)
{
	return unwind_trace(context, &stack, NULL, trace, TRACE_MAX_FRAMES).depth;
}

static int walk_memo(const void *context)
{
	return unwind_trace(context, &stack, memo, trace, TRACE_MAX_FRAMES).depth;
}

static int walk_glibc(const void *context)
{
	(void)context;
	return backtrace(addresses, TRACE_MAX_FRAMES);
}

static const struct {
	const char *name;
	int (*walk)(const void *context);
	int divisor; /* fewer rounds of slow ones */
} unwinders[] = {
	{"frame pointers", walk_frame_pointers, 1},
	{"rule cache", walk_rules, 1},
	{"memo, identical stack", walk_memo, 1},
	{"glibc backtrace()", walk_glibc, 20},
};
#define COUNT (sizeof unwinders / sizeof unwinders[0])

static void on_signal(int signal, siginfo_t *info, void *context)
{
	double best[COUNT], depth[COUNT];

	(void)signal;
	(void)info;
	for (size_t i = 0; i < COUNT; i++) {
		best[i] = 1e30;
		for (int repeat = 0; repeat < REPEATS; repeat++) {
			const int rounds = ROUNDS / unwinders[i].divisor;
			int frames = unwinders[i].walk(context);
			const uint64_t start = now_ns();
			for (int round = 0; round < rounds; round++)
				frames = unwinders[i].walk(context);
			const double each = (double)(now_ns() - start) / rounds;
			depth[i] = frames;
			best[i] = each / frames < best[i] ? each / frames : best[i];
		}
	}
	for (size_t i = 0; i < COUNT; i++)
		printf("%-22s %4.0f frames  %7.2f ns/frame  x %.2f\n", unwinders[i].name, depth[i],
		       best[i], best[i] / best[0]);
	printf("\n");
}

__attribute__((noinline)) static int recurse(int n)
{
	int (*volatile self)(int) = recurse;

	if (n == 0)
		__asm__ volatile("int3" : : : "memory");
	else
		self(n - 1);
	return sink++;
}

/* A thread, as its stack ends after few frames of libc. */
static void *run(void *argument)
{
	static const int depths[] = {9, 29, 97};
	pthread_attr_t attributes;
	void *start;
	size_t size;

	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &start, &size);
	pthread_attr_destroy(&attributes);
	stack = (struct unwind_stack){(uintptr_t)start, (uintptr_t)start + size};
	for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
		recurse(depths[i]);
	return argument;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	pthread_t thread;

	if (modules_init() != 0)
		return 1;
	memo = calloc(1, unwind_memo_bytes);
	sigaction(SIGTRAP, &action, NULL);
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	printf("misses %llu, memo %u bytes a thread, cache %u bytes\n",
	       (unsigned long long)unwind_counter(UNWIND_CACHE_MISSES), unwind_memo_bytes,
	       unwind_cache_bytes);
	free(memo);
	return 0;
}
