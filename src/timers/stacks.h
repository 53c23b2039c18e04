/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One live stack of every known thread, requested by signal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

/* The stack of a thread. A thread that blocks the signal, cannot be sent it or did not respond in
 * time has no stack: `depth` is 0. */
struct thread_stack {
	uint32_t thread_id;
	struct query_key query; /* that ran, 0: none */
	uint32_t generation;    /* of the code map that the stack is read against */
	bool truncated;
	int depth;
	const uint64_t *addresses; /* valid during the call, leaf first */
};

/* Sends a request to every thread that has a slot, including the calling one, and calls `each` for
 * those that still exist in the end; waits at most `timeout_ms` for all of them together, and for
 * other callers before it. Each thread gets at most one signal, and system calls that a signal
 * interrupts in spite of SA_RESTART end early. Any thread, outside the handler; `each` must not
 * call this. */
void sampler_stacks(uint64_t timeout_ms, void (*each)(void *context, const struct thread_stack *stack),
                    void *context);

/* The calling thread begins to exec: waits until no thread is sending it a request, and
 * none does for a second. Async-signal-safe. */
void stacks_before_exec(void);

/* In a forked child. */
void stacks_after_fork(void);
