/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/orphans.h"

#include <stdlib.h>

#include "handler/unwind/arch.h"
#include "modules/publish.h"
#include "timers/registers.h"
#include "timers/threads.h"
#include "wire/record.h"

#define NESTED 16u /* a power of two */

/* A call, and one inside of which it was found to be. For a callback that calls SQLite again and
 * again, from the same slot at the same depth, the stack is walked once. */
struct nested {
	uint64_t outer;
	uintptr_t frame, frame_return;
};

/* Not the thread's memo, which belongs to the handler. */
struct orphan_walk {
	struct nested nested[NESTED];
	uint64_t addresses[STACK_FRAMES_MAX];
	char memo[]; /* unwind_memo_bytes */
};

static struct nested *nested_slot(struct orphan_walk *walk, const struct nested *nested)
{
	uint64_t mixed = nested->outer / CALL_NUMBER_STEP + nested->frame / 16 + nested->frame_return;

	return &walk->nested[mixed & (NESTED - 1)];
}

static bool is_same(const struct nested *a, const struct nested *b)
{
	return a->outer == b->outer && a->frame == b->frame && a->frame_return == b->frame_return;
}

/* Whether the walk passed the slot's frame without meeting it. A frame that it did not reach, or
 * on another stack, may still exist. */
static bool is_passed(const struct call_slot *slot, const struct orphan_walk *walk,
                      const struct unwind_result *result, const struct unwind_stack *stack)
{
	for (int i = 1; i < result->depth; i++) {
		uintptr_t callee = result->frames[i - 1].at.sp, sp = result->frames[i].at.sp;

		if (callee >= stack->start && callee <= slot->frame && slot->frame < sp && sp <= stack->end)
			return walk->addresses[i] != slot->frame_return - 1;
	}
	return false;
}

static bool seems_around(const struct call_slot *slot, const struct unwind_stack *stack, uintptr_t frame)
{
	return call_slot_number(slot) && !slot->is_orphan && slot->frame >= stack->start &&
	       slot->frame < stack->end &&
	       frame_location(slot->frame, slot->frame_return, stack, frame) == FRAME_AROUND;
}

/* The stack of the calling code. */
static struct unwind_result walk_here(struct orphan_walk *walk, const struct unwind_stack *stack)
{
	struct unwind_result result;
	ucontext_t context;
	unsigned side;

	registers_here(&context);
	side = publish_enter_reader();
	result = unwind_addresses(&context, stack, (void *)walk->memo, walk->addresses, STACK_FRAMES_MAX);
	publish_leave_reader(side);
	return result;
}

void orphans_mark(struct calling *calling, const void *frame)
{
	const struct thread *thread = sampler_thread();
	struct unwind_result result = { .depth = -1 };

	if (!thread)
		return;
	if (!calling->walk)
		calling->walk = calloc(1, sizeof(*calling->walk) + unwind_memo_bytes);
	for (uint32_t i = 0; i < calling->used && calling->walk; i++) {
		struct call_slot *slot = &calling->slots[i];
		struct nested nested = { call_slot_number(slot), (uintptr_t)frame,
			                 frame_return_address((uintptr_t)frame) };
		struct nested *known = nested_slot(calling->walk, &nested);

		if (is_same(known, &nested) || !seems_around(slot, &thread->stack, nested.frame + 1))
			continue;
		if (result.depth < 0)
			result = walk_here(calling->walk, &thread->stack);
		if (result.frames && is_passed(slot, calling->walk, &result, &thread->stack))
			slot->is_orphan = true;
		else
			*known = nested;
	}
}
