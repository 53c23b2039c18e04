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

bool opcode_read_place(int32_t place, const uint64_t *registers, uintptr_t sp, uintptr_t cfa,
                       uintptr_t *value)
{
	if (place <= 0) {
		*value = registers[-1 - place];
		return true;
	}
	if ((uintptr_t)place * WORD > cfa - sp)
		return false;
	*value = word_at((const void *)(cfa - (uintptr_t)place * WORD), 0);
	return true;
}

/* The frame's registers: steps with all of them, from the interrupted frame to number `to`. */
static bool read_registers(struct full_walk *walk, const struct thread *thread, const void *ucontext,
                           const struct unwind_frame *leaf, uint32_t to)
{
	const struct code_map *map = code_map_current();
	const struct unwind_bounds bounds = { leaf->sp - ARCH_RED_ZONE, thread->stack.end & ~(uintptr_t)7,
		                              NULL };
	struct unwind_frame frame = *leaf;

	full_begin(walk, ucontext);
	for (uint32_t i = 0; i < to; i++)
		if (map == NULL || full_step(walk, ucontext, map, &bounds, i, &frame) != RULE_STEPPED)
			return false;
	return true;
}

/* The number of the opcode at `address` in the program, OPCODE_UNKNOWN: none is there. The
 * first one runs once, and its address is that of the program, which other places hold. */
static uint32_t number_of(const struct opcode_places *at, const void *statement, uintptr_t address)
{
	uintptr_t offset = address - word_at(statement, at->a_op);

	return offset != 0 && offset < (uintptr_t)number_at(statement, at->n_op) * at->op_bytes &&
	                       offset % at->op_bytes == 0
	               ? (uint32_t)(offset / at->op_bytes)
	               : OPCODE_UNKNOWN;
}

static uint32_t calling_opcode(const struct opcode_places *at, const void *frame)
{
	for (const void *parent; (parent = (const void *)word_at(frame, at->frame_parent)) != NULL;)
		frame = parent;
	return number_at(frame, at->frame_pc);
}

/* What several places say: they agree, or it is not known. */
static uint32_t agree(uint32_t found, uint32_t number)
{
	return found == OPCODE_UNKNOWN || found == number ? number : 0;
}

/* Of the interrupted frame all registers are known, and the compiler need not have spilled the
 * address; what is in none of them may be in a slot. 0: they hold several. */
static uint32_t in_registers(const struct opcode_places *at, const void *statement,
                             const uint64_t registers[CFI_REGISTERS])
{
	uint32_t found = OPCODE_UNKNOWN, number;

	for (int i = 0; i < CFI_REGISTERS && found != 0; i++) {
		number = number_of(at, statement, registers[i]);
		if (number != OPCODE_UNKNOWN)
			found = agree(found, number);
	}
	return found;
}

/* In the frame with these registers. */
static uint32_t in_frame(const struct opcode_places *at, const void *statement, const uint64_t *registers,
                         const struct unwind_frame *frame, uintptr_t cfa)
{
	uint32_t found = OPCODE_UNKNOWN, number;
	uintptr_t value;

	for (uint32_t i = 0; i < at->count; i++) {
		if (!opcode_read_place(at->places[i], registers, frame->sp, cfa, &value))
			continue;
		number = number_of(at, statement, value);
		if (number != OPCODE_UNKNOWN && at->places[i] <= 0)
			return number;
		if (number != OPCODE_UNKNOWN)
			found = agree(found, number);
	}
	return found == 0 ? OPCODE_UNKNOWN : found;
}

/* Of the statement's frame, number `index`. Not inlined: queries without opcodes need no stack
 * for the registers. */
__attribute__((noinline)) static uint32_t look(const struct opcode_places *at, const void *statement,
                                               const struct thread *thread, const void *ucontext,
                                               const struct unwind_memo *memo, uint32_t index)
{
	const struct unwind_frame *frame = unwind_memo_frame(memo, index);
	const uintptr_t cfa = unwind_memo_frame(memo, index + 1)->sp;
	/* One place alone is always right. */
	const bool by_registers = at->count > 1 && index == 0;
	struct full_walk walk = { .begun = false };
	uint32_t number = OPCODE_UNKNOWN;

	if ((by_registers || at->places[0] <= 0) &&
	    !read_registers(&walk, thread, ucontext, unwind_memo_frame(memo, 0), index))
		return OPCODE_UNKNOWN;
	if (by_registers)
		number = in_registers(at, statement, walk.registers);
	if (number == OPCODE_UNKNOWN)
		number = in_frame(at, statement, walk.registers, frame, cfa);
	return number == 0 ? OPCODE_UNKNOWN : number;
}

uint32_t opcode_running(const struct thread *thread, const struct query_tag *tag, const void *ucontext,
                        const struct unwind_result *trace)
{
	const struct opcode_places *at = tag->counts->opcodes;
	const void *statement = tag->counts->statement, *trigger;
	const struct unwind_memo *memo = thread_memo((struct thread *)thread);
	int found = -1;

	if (at == NULL || statement == NULL || tag->frame == 0 || !trace->kept)
		return OPCODE_UNKNOWN;
	for (int i = 0; i + 1 < trace->depth; i++) {
		const struct unwind_frame *frame = unwind_memo_frame(memo, (uint32_t)i);
		if (frame->sp >= tag->frame)
			break;
		if (frame->pc - at->start < at->end - at->start)
			found = i;
	}
	if (found < 0)
		return OPCODE_UNKNOWN;
	trigger = (const void *)word_at(statement, at->frame);
	return trigger != NULL ? calling_opcode(at, trigger)
	                       : look(at, statement, thread, ucontext, memo, (uint32_t)found);
}
