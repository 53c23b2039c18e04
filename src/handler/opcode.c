/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statement is alive, and its thread stands still: the interpreter's frame is on the
 * stack, inside the frame of the call that works for the statement. The outermost such frame
 * is the statement's; further in are those of statements that it runs itself.
 */
#include "handler/opcode.h"

#include "handler/unwind/full.h"

#define WORD sizeof(uintptr_t)

static uintptr_t word_at(const void *base, uint32_t offset)
{
	return *(const volatile uintptr_t *)((const char *)base + offset);
}

static uint32_t number_at(const void *base, uint32_t offset)
{
	return *(const volatile uint32_t *)((const char *)base + offset);
}

/* The interpreter's frame of a sample, and what it works for. */
struct search {
	const struct opcode_places *at;
	uintptr_t program; /* the statement's first opcode */
	uint32_t count;    /* opcodes */
	uint32_t found;    /* OPCODE_UNKNOWN: none yet */
	bool differ;       /* two places hold two opcodes */
};

/* A value that is the address of an opcode. The first opcode runs once, and its address is that of the
 * program, which other places hold. */
static bool look_at(struct search *search, uintptr_t value)
{
	/* The odd part's inverse divides where there is no remainder, and else makes a number that is
	 * larger than any quotient; so does what the shift drops, as it comes back on top. */
	const uint64_t product = (value - search->program) * search->at->op_inverse;
	const uint64_t number = product >> search->at->op_shift | product << (64 - search->at->op_shift);

	if (number - 1 >= search->count - (uint64_t)1)
		return false;
	search->differ |= search->found != OPCODE_UNKNOWN && search->found != number;
	search->found = (uint32_t)number;
	return true;
}

static uint32_t calling_opcode(const struct opcode_places *at, const void *frame)
{
	for (const void *parent; (parent = (const void *)word_at(frame, at->frame_parent)) != NULL;)
		frame = parent;
	return number_at(frame, at->frame_pc);
}

/* The registers of frame number `to`: a walk with all of them. */
static bool read_registers(struct full_walk *walk, const struct thread *thread, const void *ucontext, int to)
{
	const struct code_map *map = code_map_current();
	struct unwind_frame frame = arch_interrupted_frame(ucontext);
	const struct unwind_bounds bounds = { frame.sp - ARCH_RED_ZONE, thread->stack.end & ~(uintptr_t)7,
		                              NULL };

	full_begin(walk, ucontext);
	if (to > 0 && (frame.sp < thread->stack.start || frame.sp >= thread->stack.end || map == NULL))
		return false;
	for (int i = 0; i < to; i++)
		if (full_step(walk, ucontext, map, &bounds, (uint32_t)i, &frame) != RULE_STEPPED)
			return false;
	return true;
}

/* Of the interrupted frame all registers are known, and the compiler need not have spilled the
 * address; what is in none of them may be in a slot. In a frame that has called, the places in
 * registers are right where they hold an opcode at all; a slot may keep an older one. Not inlined: queries
 * without places in registers need no stack for them. */
__attribute__((noinline)) static bool look_in_registers(struct search *search, const struct thread *thread,
                                                        const void *ucontext, int index)
{
	const struct opcode_places *at = search->at;
	struct full_walk walk = { .begun = false };
	bool seen = false;

	if (!read_registers(&walk, thread, ucontext, index))
		return false;
	for (int i = 0; index == 0 && i < CFI_REGISTERS; i++)
		seen |= look_at(search, walk.registers[i]);
	for (uint32_t i = 0; index > 0 && !seen && i < at->count && at->places[i] <= 0; i++)
		seen = look_at(search, walk.registers[-1 - at->places[i]]);
	return true;
}

static void look_in_slots(struct search *search, const struct unwind_stack *stack, uintptr_t sp,
                          uintptr_t cfa)
{
	const struct opcode_places *at = search->at;
	uintptr_t value;

	for (uint32_t i = 0; i < at->count; i++)
		if (at->places[i] > 0 && (uintptr_t)at->places[i] * WORD <= cfa - sp &&
		    unwind_read_words(stack, cfa - (uintptr_t)at->places[i] * WORD, &value, 1))
			look_at(search, value);
}

/* In the statement's frame, number `index`. */
static uint32_t look(const struct opcode_places *at, const void *statement, const struct thread *thread,
                     const void *ucontext, const struct unwind_memo *memo, int index)
{
	struct search search = { at, word_at(statement, at->a_op), number_at(statement, at->n_op),
		                 OPCODE_UNKNOWN, false };
	/* One slot alone is always right. */
	const bool by_registers = at->places[0] <= 0 || (at->count > 1 && index == 0);

	if (by_registers && !look_in_registers(&search, thread, ucontext, index))
		return OPCODE_UNKNOWN;
	if (search.found == OPCODE_UNKNOWN)
		look_in_slots(&search, &thread->stack, unwind_memo_sp(memo, index),
		              unwind_memo_sp(memo, index + 1));
	return search.differ ? OPCODE_UNKNOWN : search.found;
}

/* The number of the statement's frame, -1: it is not on the stack. */
static int find_frame(const struct opcode_places *at, const struct unwind_memo *memo, uintptr_t end,
                      const uint64_t *trace, int depth)
{
	int found = -1;

	for (int i = 0; i + 1 < depth; i++)
		if (__builtin_expect(trace[i] - at->start < at->end - at->start, 0)) {
			if (unwind_memo_sp(memo, i) >= end)
				break;
			found = i;
		}
	return found;
}

uint32_t opcode_running(struct thread *thread, const struct query_tag *tag, const void *ucontext,
                        const uint64_t *trace, const struct unwind_result *unwound)
{
	const struct opcode_places *at = tag->counts->opcodes;
	const void *statement = tag->counts->statement, *trigger;
	const struct unwind_memo *memo = thread_memo(thread);
	uint32_t number;
	int index;

	if (at == NULL || statement == NULL || tag->frame == 0 || !unwound->kept)
		return OPCODE_UNKNOWN;
	index = find_frame(at, memo, tag->frame, trace, unwound->depth);
	if (index < 0)
		return OPCODE_UNKNOWN;
	trigger = (const void *)word_at(statement, at->frame);
	number = trigger != NULL ? calling_opcode(at, trigger)
	                         : look(at, statement, thread, ucontext, memo, index);
	if (number == OPCODE_UNKNOWN)
		thread_count(thread, LEDGER_NO_OPCODE, 1);
	return number;
}
