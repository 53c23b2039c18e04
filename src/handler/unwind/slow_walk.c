/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/slow_walk.h"

#include "handler/unwind/frame_pointer.h"
#include "handler/unwind/full.h"
#include "handler/unwind/rules.h"
#include "handler/unwind/stack_copy.h"
#include "wire/ledger.h"

/* The most that the walk reads of an unknown stack: in all, and above one frame. */
#define EXTENT ((uintptr_t)1 << 20)
#define FRAME_EXTENT (EXTENT / 4)

/* Stacks within stacks; more of them are damage. */
#define MAX_CHANGES 4

/* The stack that the walk is on. */
struct view {
	struct unwind_bounds bounds;
	uintptr_t limit; /* of bounds.high; 0: the walk is on the known stack */
	struct stack_copy copy;
	uint32_t changes;
	struct full_frame full; /* frame number full_at - 1, once begun */
	uint32_t full_at;
};

static bool is_known(const struct walk *walk, uintptr_t sp)
{
	return sp >= walk->stack->start && sp < walk->stack->end;
}

static bool enter(const struct walk *walk, struct view *view, uintptr_t sp)
{
	view->limit = 0;
	if (is_known(walk, sp)) {
		view->bounds = walk_bounds(walk->stack, sp);
		return true;
	}
	if (view->copy.held == 0)
		unwind_count(UNWIND_UNKNOWN_STACKS);
	if (sp < STACK_COPY_BYTES || sp > UINTPTR_MAX - 2 * EXTENT || !stack_copy_begin(&view->copy, sp))
		return false;
	view->bounds = (struct unwind_bounds){ sp - ARCH_RED_ZONE, sp, &view->copy };
	view->limit = (sp + EXTENT) & ~(uintptr_t)7;
	return true;
}

/* Moves the upper bound to the extent of the frame at `sp`. */
static void move_up(struct view *view, uintptr_t sp)
{
	if (__builtin_expect(view->limit == 0, 1))
		return;
	view->bounds.high = (sp + FRAME_EXTENT) & ~(uintptr_t)7;
	if (view->bounds.high > view->limit)
		view->bounds.high = view->limit;
}

/* Whether `sp` is further up on the stack that `from` is on. */
static bool is_above(const struct walk *walk, const struct view *view, uintptr_t from, uintptr_t sp)
{
	return sp > from && sp < view->bounds.high && (view->limit == 0 || !is_known(walk, sp));
}

/* From a signal's trampoline to the frame that the signal interrupted. */
static enum rule_result step_signal(const struct walk *walk, struct view *view, struct unwind_frame *frame)
{
	struct unwind_frame interrupted = *frame;

	if (!arch_signal_frame(&interrupted, &view->bounds))
		return RULE_OUT_OF_BOUNDS;
	if (interrupted.sp % 8 != 0 ||
	    (!is_above(walk, view, frame->sp, interrupted.sp) &&
	     (view->limit == 0 || view->changes++ == MAX_CHANGES || !enter(walk, view, interrupted.sp))))
		return RULE_OUT_OF_BOUNDS;
	*frame = interrupted;
	return RULE_STEPPED;
}

/* To the caller whose frame is on another stack. */
static enum rule_result step_over(const struct walk *walk, struct view *view, rule_t rule,
                                  struct unwind_frame *frame)
{
	enum rule_result result;

	if (view->changes++ == MAX_CHANGES || !enter(walk, view, frame->fp))
		return RULE_LEADS_NOWHERE;
	frame->sp = frame->fp;
	move_up(view, frame->sp);
	result = frame_pointer_step(walk->map, &view->bounds, rule, false, frame);
	return result == RULE_OTHER_STACK ? RULE_LEADS_NOWHERE : result;
}

/* Frame number `n` needs all registers, which are computed from those of the interrupted frame. */
static enum rule_result step_all(const struct walk *walk, struct view *view, uint32_t n,
                                 struct unwind_frame *frame)
{
	struct full_frame *full = &view->full;
	enum rule_result result = RULE_STEPPED;

	if (view->full_at == 0) {
		full_begin(full, walk->ucontext);
		view->full_at = 1;
	}
	for (; view->full_at <= n + 1 && result == RULE_STEPPED; view->full_at++) {
		/* If the two walks disagree, trust neither. */
		if (view->full_at == n + 1 &&
		    (full->pc != frame->pc || full->registers[CFI_STACK_POINTER] != frame->sp))
			return RULE_OUT_OF_BOUNDS;
		result = full_step(full, walk->map, &view->bounds);
	}
	if (result == RULE_STEPPED)
		*frame = arch_frame_of(full->registers, full->pc);
	return result;
}

/* By a rule that is not plain. `exact`: the frame was not left by a call. */
static enum rule_result step(const struct walk *walk, struct view *view, rule_t rule, uint32_t n, bool exact,
                             struct unwind_frame *frame)
{
	enum rule_result result;

	switch ((enum rule_kind)(rule & 15)) {
	case RULE_BOTTOM: return RULE_AT_BOTTOM;
	case RULE_START: return exact ? RULE_LEADS_NOWHERE : RULE_AT_BOTTOM;
	case RULE_SIGNAL: return step_signal(walk, view, frame);
	case RULE_FULL: return step_all(walk, view, n, frame);
	default: break;
	}
	result = frame_pointer_step(walk->map, &view->bounds, rule, exact, frame);
	return result == RULE_OTHER_STACK ? step_over(walk, view, rule, frame) : result;
}

struct unwind_result slow_walk(const struct walk *walk, struct unwind_frame frame, uint32_t n)
{
	/* Copies: no store through `addresses` can change them. The usual case is a stack with known bounds
	 * and without a memo: with few taken branches a turn, the processor foresees the last one. */
	const struct code_map *const map = walk->map;
	uint64_t *const addresses = walk->addresses, *const rules = map->rules;
	struct memo_frame *const frames = walk->frames;
	const uint32_t max = walk->max;
	struct view view; /* not zero-filled: nearly no walk begins `full` */
	enum rule_result end;
	uintptr_t fp_slot;
	bool exact = n == 0;

	view.copy = (struct stack_copy){ .page = walk->page };
	view.limit = view.changes = view.full_at = 0;
	if (n != 0) {
		view.bounds = walk_bounds(walk->stack, arch_interrupted_frame(walk->ucontext).sp);
	} else if (!enter(walk, &view, frame.sp)) {
		addresses[n] = frame.pc;
		unwind_count(UNWIND_BAD_READ);
		return (struct unwind_result){ 1, true, map->generation, NULL };
	}
	do {
		addresses[n] = frame.pc;
		if (__builtin_expect(frames != NULL, 0))
			frames[n].at = frame;
		const rule_t rule = rules_find(map, rules, frame.pc).rule;
		move_up(&view, frame.sp);
		if (__builtin_expect(rule_is_plain(rule), 1)) {
			end = rule_apply(rule, &frame, &view.bounds, &fp_slot);
			exact = false;
		} else {
			/* A copy: frame must stay in registers, as the loop is one chain through it. */
			struct unwind_frame copy = frame;
			end = step(walk, &view, rule, n, exact, &copy);
			exact = rule_leaves_signal(rule);
			frame = copy;
		}
		n++;
	} while (end == RULE_STEPPED && n < max);
	/* With RULE_LEADS_NOWHERE the last frame stays: rules are exact, so it is the caller, if only in
	 * code that was compiled at run time. */
	if (end == RULE_OUT_OF_BOUNDS)
		unwind_count(UNWIND_BAD_READ);
	else if (end == RULE_LEADS_NOWHERE)
		unwind_count(UNWIND_NO_RULE);
	return (struct unwind_result){ (int16_t)n, end != RULE_AT_BOTTOM, map->generation, frames };
}
