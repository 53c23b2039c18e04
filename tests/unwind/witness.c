/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program that a debugger runs. Every millisecond of CPU time, a signal handler unwinds
 * the main thread and calls witness_stop(). There the debugger reads the trace and the stack. See
 * gdb_witness.py.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>

#include "../lib/thread_stack.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"

#define SHOWN __attribute__((visibility("default")))

SHOWN uint64_t witness_trace[STACK_FRAMES_MAX];
SHOWN volatile struct {
	int64_t depth, truncated, memo_differs;
} witness_result;

static struct unwind_stack stack;
static struct unwind_memo *memo;
static uint64_t again[STACK_FRAMES_MAX];

SHOWN void witness_stop(void);

__attribute__((noinline)) void witness_stop(void)
{
	__asm__ volatile("" : : : "memory");
}

static void on_tick(int signal, siginfo_t *info, void *context)
{
	const struct unwind_result plain = unwind_addresses(context, &stack, NULL, again, STACK_FRAMES_MAX);
	const struct unwind_result result =
		unwind_addresses(context, &stack, memo, witness_trace, STACK_FRAMES_MAX);

	(void)signal;
	(void)info;
	witness_result.depth = result.depth;
	witness_result.truncated = result.truncated;
	witness_result.memo_differs = plain.depth != result.depth || plain.truncated != result.truncated;
	for (int i = 0; i < result.depth; i++)
		witness_result.memo_differs |= witness_trace[i] != again[i];
	witness_stop();
}

__attribute__((constructor)) static void start(void)
{
	struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
	const struct itimerval millisecond = { { 0, 1000 }, { 0, 1000 } };

	memo = calloc(1, unwind_memo_bytes);
	stack = thread_stack();
	sigaction(SIGPROF, &action, NULL);
	if (modules_init() == 0)
		setitimer(ITIMER_PROF, &millisecond, NULL);
}
