/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over unknown stacks. It uses the rule cache and no memo, and its bounds may move
 * between two frames.
 */
#include "handler/unwind/unknown.h"

#include <stdbool.h>
#include <stddef.h>

#include "handler/unwind/counters.h"
#include "handler/unwind/frame_pointer.h"
#include "handler/unwind/full.h"
#include "handler/unwind/rules.h"
#include "handler/unwind/stack_copy.h"

/* The most that the walk reads of an unknown stack: in all, and above one frame. */
#define SPAN ((uintptr_t)1 << 20)
#define SPAN_OF_FRAME (SPAN / 4)

/* Signal stacks within signal stacks; more of them are damage. */
#define MAX_CHANGES 4

/* The stack that the walk is on. */
struct view {
	struct unwind_bounds bounds;
	uintptr_t limit; /* of bounds.high; 0: the walk is on the known stack */
	const struct unwind_stack *known;
	struct stack_copy copy;
	uint32_t changes;
};

static bool enter_known(struct view *view, uintptr_t sp)
{
	const struct unwind_stack *known = view->known;

	if (sp < known->start || sp >= known->end)
		return false;
	view->bounds = (struct unwind_bounds){ sp - ARCH_RED_ZONE, known->end & ~(uintptr_t)7, NULL };
	if (view->bounds.low < known->start || view->bounds.low > sp)
		view->bounds.low = known->start;
	view->limit = 0;
	return true;
}

static bool enter_unknown(struct view *view, uintptr_t sp)
{
	if (sp < STACK_COPY_BYTES || sp > UINTPTR_MAX - 2 * SPAN || !stack_copy_begin(&view->copy, sp))
		return false;
	view->bounds = (struct unwind_bounds){ sp - ARCH_RED_ZONE, sp, &view->copy };
	view->limit = (sp + SPAN) & ~(uintptr_t)7;
	return true;
}

/* Moves the upper bound to the span of the frame at `sp`. */
static void move_up(struct view *view, uintptr_t sp)
{
	if (view->limit == 0)
		return;
	view->bounds.high = (sp + SPAN_OF_FRAME) & ~(uintptr_t)7;
	if (view->bounds.high > view->limit)
		view->bounds.high = view->limit;
}

/* Whether `sp` is further up on the stack that `from` is on. */
static bool is_above(struct view *view, uintptr_t from, uintptr_t sp)
{
	const struct unwind_stack *known = view->known;

	if (view->limit != 0 && sp >= known->start && sp < known->end)
		return false;
	return sp > from && sp < view->bounds.high &&
	       (view->limit == 0 || stack_copy_reaches(&view->copy, sp));
}

/* From a signal's trampoline to the frame that the signal interrupted. */
static enum rule_result step_signal(struct view *view, struct full_walk *full, uint32_t index,
                                    struct unwind_frame *frame)
{
	struct unwind_frame interrupted = *frame;

	if (!arch_signal_frame(&interrupted, &view->bounds))
		return RULE_OUT_OF_BOUNDS;
	full_begin_again(full, frame, &view->bounds, index + 1);
	if (!is_above(view, frame->sp, interrupted.sp) &&
	    (view->limit == 0 || view->changes++ == MAX_CHANGES ||
	     !(enter_known(view, interrupted.sp) || enter_unknown(view, interrupted.sp))))
		return RULE_OUT_OF_BOUNDS;
	*frame = interrupted;
	return RULE_STEPPED;
}

/* To the caller whose frame is on another stack. */
static enum rule_result step_over(struct view *view, const struct code_map *map, rule_t rule,
                                  struct unwind_frame *frame)
{
	enum rule_result result;

	if (view->changes++ == MAX_CHANGES ||
	    !(enter_known(view, frame->fp) || enter_unknown(view, frame->fp)))
		return RULE_HAS_NONE;
	frame->sp = frame->fp;
	move_up(view, frame->sp);
	result = frame_pointer_step(map, &view->bounds, rule, false, frame, RULE_HAS_NONE);
	return result == RULE_OTHER_STACK ? RULE_HAS_NONE : result;
}

/* One step from frame number `index`. */
static enum rule_result step(struct view *view, struct full_walk *full, const struct code_map *map,
                             const struct found_rule *found, uint32_t index, bool exact,
                             struct unwind_frame *frame)
{
	uintptr_t fp_slot;

	move_up(view, frame->sp);
	if (rule_leaves_signal(found->rule))
		return step_signal(view, full, index, frame);
	enum rule_result result = rule_apply(found->rule, frame, &view->bounds, &fp_slot);
	if (result == RULE_HAS_NONE || result == RULE_NOT_CODE)
		result = frame_pointer_step(map, &view->bounds, found->rule, exact, frame, result);
	if (result == RULE_OTHER_STACK)
		return step_over(view, map, found->rule, frame);
	if (result != RULE_NEEDS_ALL)
		return result;
	return full_step(full, NULL, map, &view->bounds, index, frame);
}

/* On from frame number `n`, which is `frame`. */
static struct unwind_result go_on(struct view *view, struct full_walk *full, const struct code_map *map,
                                  struct unwind_frame frame, bool exact, uint64_t *trace, uint32_t n,
                                  uint32_t max, struct memo_frame *frames)
{
	enum rule_result end;

	do {
		trace[n] = frame.pc;
		if (frames != NULL)
			frames[n].at = frame;
		n++;
		const struct found_rule found = rules_find(map, map->rules, frame.pc);
		end = step(view, full, map, &found, n - 1, exact, &frame);
		if (end == RULE_STEPPED)
			exact = rule_leaves_signal(found.rule);
	} while (end == RULE_STEPPED && n < max);
	stack_copy_end(&view->copy);
	/* As in walk() of unwind.c. */
	if (end == RULE_AT_START)
		end = exact ? RULE_HAS_NONE : RULE_AT_BOTTOM;
	if (end == RULE_HAS_NONE || end == RULE_NOT_CODE)
		unwind_count(UNWIND_NO_RULE);
	else if (end == RULE_OUT_OF_BOUNDS)
		unwind_count(UNWIND_BAD_READ);
	return (struct unwind_result){ (int)n, end != RULE_AT_BOTTOM, map->generation, frames != NULL };
}

struct unwind_result unwind_unknown(const void *ucontext, const struct code_map *map,
                                    const struct unwind_stack *known, struct unwind_frame leaf,
                                    uint64_t *trace, uint32_t max, struct memo_frame *frames)
{
	struct view view = { .known = known };
	struct full_walk full;

	unwind_count(UNWIND_UNKNOWN_STACKS);
	if (!enter_known(&view, leaf.sp) && !enter_unknown(&view, leaf.sp)) {
		trace[0] = leaf.pc;
		stack_copy_end(&view.copy);
		unwind_count(UNWIND_BAD_READ);
		return (struct unwind_result){ 1, true, map->generation, false };
	}
	full_begin(&full, ucontext);
	return go_on(&view, &full, map, leaf, true, trace, 0, max, frames);
}

struct unwind_result unwind_other_stack(const struct code_map *map, const struct unwind_stack *known,
                                        struct unwind_frame frame, uint64_t *trace, uint32_t n, uint32_t max,
                                        struct memo_frame *frames)
{
	struct view view = { .known = known };
	struct full_walk full = { .begun = true, .lost = true };

	unwind_count(UNWIND_UNKNOWN_STACKS);
	if (n == max ||
	    step_over(&view, map, rules_find(map, map->rules, frame.pc).rule, &frame) != RULE_STEPPED) {
		stack_copy_end(&view.copy);
		unwind_count(UNWIND_NO_RULE);
		return (struct unwind_result){ (int)n, true, map->generation, frames != NULL };
	}
	return go_on(&view, &full, map, frame, false, trace, n, max, frames);
}
