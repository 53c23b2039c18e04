/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statement exists, and its thread is interrupted: the interpreter's frame is on the stack,
 * inside the frame of the call that works for the statement. The outermost such frame belongs to the
 * statement, inner ones to statements that it runs itself.
 */
#include "handler/opcode.h"

#include "handler/unwind/rules.h"

#define AT(type, base, offset) (*(type const volatile *)((const char *)(base) + (offset)))
/* Code that few samples need is separate, because after a signal each cache line of code costs
 * more than the instructions in it. */
#define APART __attribute__((noinline, cold))

/* The number of the opcode at an address, OPCODE_UNKNOWN: there is none. The first opcode runs
 * once, and its address is that of the bytecode, which other locations hold. A statement's last
 * one is a Goto, which takes no time; that of a trigger is Halt, which leaves the trigger's frame
 * long before the bytecode. */
static uint32_t number_of(const struct opcode_locations *at, const void *statement, uintptr_t address)
{
	/* Multiplying by the odd part's inverse divides if there is no remainder, and otherwise
	 * yields a number larger than any quotient; so do the bits that the shift drops, because
	 * they are rotated to the top. */
	const uint64_t product = (address - AT(uintptr_t, statement, at->a_op)) * at->op_inverse;
	const uint64_t number = product >> at->op_shift | product << (64 - at->op_shift);

	return number - 1 < AT(uint32_t, statement, at->n_op) - 2ul ? (uint32_t)number : OPCODE_UNKNOWN;
}

/* While a trigger runs: the opcode of the statement that called it. Above it, plus 1, that of the
 * trigger's bytecode: the running one, or the one that called an inner trigger. The statement
 * keeps its previous bytecode for some more instructions. */
APART static uint64_t add_caller(const struct opcode_locations *at, const void *statement, const void *frame,
                                 uint32_t number)
{
	if (AT(uintptr_t, statement, at->a_op) == AT(uintptr_t, frame, at->frame_a_op))
		number = OPCODE_UNKNOWN;
	for (const void *parent; (parent = AT(void *, frame, at->frame_parent)); frame = parent)
		number = AT(uint32_t, frame, at->frame_pc);
	return (uint64_t)(number + 1) << 32 | AT(uint32_t, frame, at->frame_pc);
}

/* 0, here and below: it cannot be read. It is not the address of an opcode. */
APART static uintptr_t read_elsewhere(const struct unwind_stack *stack, uintptr_t slot)
{
	uintptr_t value;

	return unwind_read_words(stack, slot, &value, 1) ? value : 0;
}

static uintptr_t read_slot(const struct unwind_stack *stack, const struct memo_frame *frame, unsigned words)
{
	const uintptr_t slot = frame[1].at.sp - words * sizeof(uintptr_t);

	if (slot < frame->at.sp)
		return 0;
	if (__builtin_expect(slot - stack->start >= stack->end - stack->start, 0))
		return read_elsewhere(stack, slot);
	return *(const volatile uintptr_t *)slot;
}

/* A register of a frame: the nearest frame that it has called and that uses the register has saved
 * it in a slot; otherwise the register is unchanged. */
APART static uintptr_t read_register(const struct unwind_stack *stack, const struct memo_frame *frame,
                                     const struct memo_frame *leaf, const void *ucontext, unsigned number)
{
	const struct code_map *map = code_map_current();
	unsigned words = 0;

	if (!map || !map->rules || code_map_moved(map))
		return 0;
	while (words == 0 && frame > leaf)
		if (!rules_find_saved(map, (--frame)->at.pc, number, &words))
			return 0;
	return words == 0 ? arch_register(ucontext, number) : read_slot(stack, frame, words);
}

/* The statement's frame, NULL: it is not on the stack. The outermost frame has no CFA. */
static const struct memo_frame *find_frame(const struct opcode_locations *at, const struct memo_frame *frame,
                                           int depth, uintptr_t end)
{
	const struct memo_frame *const last = frame + depth - 1, *found = NULL;
	const uintptr_t start = at->start, size = at->end - start;

	while (frame < last && frame->at.pc - start >= size)
		frame++;
	for (; frame < last && frame->at.sp < end; frame++)
		if (frame->at.pc - start < size)
			found = frame;
	return found;
}

uint64_t opcode_running(struct thread *thread, const struct query_tag *tag, const void *ucontext,
                        const struct unwind_result *unwound)
{
	const struct opcode_locations *at = tag->counts->opcodes;
	const void *statement = tag->counts->statement, *trigger;
	const struct memo_frame *leaf = unwound->frames, *frame = NULL;
	uint64_t number = OPCODE_UNKNOWN;

	if (!statement)
		return OPCODE_UNKNOWN;
	if (at && leaf && tag->frame != 0)
		frame = find_frame(at, leaf, unwound->depth, tag->frame);
	if (frame) {
		const unsigned location = at->locations[frame->at.pc - at->start];

		if (__builtin_expect(location > OPCODE_SLOT, 1))
			number = number_of(at, statement,
			                   read_slot(&thread->stack, frame, location - OPCODE_SLOT));
		else if (location != 0)
			number =
				number_of(at, statement,
			                  read_register(&thread->stack, frame, leaf, ucontext, location - 1));
		if ((trigger = AT(void *, statement, at->frame)))
			number = add_caller(at, statement, trigger, (uint32_t)number);
	}
	if (__builtin_expect(number == OPCODE_UNKNOWN, 0))
		thread_count(thread, LEDGER_NO_OPCODE, 1);
	return number;
}

struct run_start opcode_start(const struct query_counts *counts)
{
	const struct opcode_locations *at = counts->opcodes;
	struct run_start start = counts->start;

	if (start.bytecode == 0 || !at || !counts->statement) {
		start.bytecode = 0;
		return start;
	}
	const void *opcodes = AT(void *, counts->statement, at->a_op);
	/* While a trigger runs, the outermost frame has the statement's own. */
	for (const void *frame = AT(void *, counts->statement, at->frame); frame;
	     frame = AT(void *, frame, at->frame_parent))
		opcodes = AT(void *, frame, at->frame_a_op);
	if (opcodes != start.opcodes)
		start.bytecode = 0;
	return start;
}
