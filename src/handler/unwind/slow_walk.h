/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk without a memo, for all rare cases: rules that need more than a frame holds, code without
 * rules, and stacks with unknown bounds (alternate signal stacks, coroutines, Go's, threads that are
 * not registered). It reads such a stack through stack_copy.h, and continues from one stack to
 * another: from a signal handler on an alternate stack to the interrupted code, and from C to the
 * goroutine that called it.
 */
#pragma once

#include "base/code_map.h"
#include "base/frame_location.h"
#include "handler/unwind/arch.h"
#include "handler/unwind/result.h"

struct walk {
	const void *ucontext;
	const struct code_map *map;
	const struct unwind_stack *stack; /* whose bounds are known */
	uint64_t *addresses;
	uint32_t max;              /* entries of the stack, not 0 */
	struct memo_frame *frames; /* as many get the frames; NULL: not wanted */
	unsigned char *page;       /* for struct stack_copy */
};

/* The walk may read so much of the known stack, on which code runs at `sp`. */
static inline struct unwind_bounds walk_bounds(const struct unwind_stack *stack, uintptr_t sp)
{
	const uintptr_t low = sp - ARCH_RED_ZONE, high = stack->end & ~(uintptr_t)7;

	return (struct unwind_bounds){ low < stack->start || low > sp ? stack->start : low, high, NULL };
}

/* Continues from frame number `n`, which is `frame`; 0: the interrupted one. */
struct unwind_result slow_walk(const struct walk *walk, struct unwind_frame frame, uint32_t n);
