/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a call's frame is still there, and code runs inside it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The bounds of a thread's stack; both 0: unknown. */
struct unwind_stack {
	uintptr_t start, end;
};

/* The place of a frame's return address: after the saved frame pointer, on x86-64 as on aarch64.
 * The frame may no longer exist, and memory that AddressSanitizer guards may be there now. */
__attribute__((no_sanitize("address"))) static inline uintptr_t frame_return_address(uintptr_t frame)
{
	return ((const volatile uintptr_t *)frame)[1];
}

enum frame_location {
	FRAME_AROUND,    /* the code runs inside the frame */
	FRAME_LEFT,      /* the frame no longer exists: a longjmp left it */
	FRAME_ELSEWHERE, /* the frame is on another stack */
};

/* The bounds of a coroutine's stack are not known. A frame further up than this is taken for
 * one of another coroutine. Ruby's fibers have stacks of 512 KiB, 648 KiB apart: at 1 MiB a
 * query of one fiber was a part of its neighbour's. */
#define COROUTINE_STACK_BYTES ((uintptr_t)512 << 10)

/* The location of `frame` for code whose stack ends at `sp`. `return_address` is the frame's
 * return address when it was made: another value shows that it was left and overwritten. Only the
 * thread's own stack is read, because another one may have been unmapped. */
static inline enum frame_location frame_location(uintptr_t frame, uintptr_t return_address,
                                                 const struct unwind_stack *stack, uintptr_t sp)
{
	bool frame_on_own = frame >= stack->start && frame < stack->end;
	bool sp_on_own = sp >= stack->start && sp < stack->end;

	if (frame_on_own != sp_on_own)
		return FRAME_ELSEWHERE;
	if (frame_on_own)
		return sp > frame || frame_return_address(frame) != return_address ? FRAME_LEFT
		                                                                   : FRAME_AROUND;
	return sp <= frame && frame - sp < COROUTINE_STACK_BYTES ? FRAME_AROUND : FRAME_ELSEWHERE;
}
