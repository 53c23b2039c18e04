/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statement is alive, and its thread stands still: the interpreter's frame is on the
 * stack, inside the frame of the call that works for the statement. The outermost such frame
 * is the statement's; further in are those of statements that it runs itself.
 */
#include "handler/opcode.h"

#include "handler/unwind/rules.h"

#define WORD sizeof(uintptr_t)

static uintptr_t word_at(const void *base, uint32_t offset)
{
	return *(const volatile uintptr_t *)((const char *)base + offset);
}

static uint32_t number_at(const void *base, uint32_t offset)
{
	return *(const volatile uint32_t *)((const char *)base + offset);
}

/* The number of the opcode at an address, OPCODE_UNKNOWN: there is none. The first opcode runs once, and its
 * address is that of the program, which other places hold. */
static uint32_t number_of(const struct opcode_places *at, const void *statement, uintptr_t address)
{
	/* The odd part's inverse divides where there is no remainder, and else makes a number that is
	 * larger than any quotient; so does what the shift drops, as it comes back on top. */
	const uint64_t product = (address - word_at(statement, at->a_op)) * at->op_inverse;
	const uint64_t number = product >> at->op_shift | product << (64 - at->op_shift);

	return number - 1 < number_at(statement, at->n_op) - (uint64_t)1 ? (uint32_t)number : OPCODE_UNKNOWN;
}

static uint32_t calling_opcode(const struct opcode_places *at, const void *frame)
{
	for (const void *parent; (parent = (const void *)word_at(frame, at->frame_parent)) != NULL;)
		frame = parent;
	return number_at(frame, at->frame_pc);
}

/* What a place of frame number `index` holds. The nearest frame that it has called and that uses a register
 * has saved it in a slot; without one the register is as it was. */
static bool read_place(struct thread *thread, const struct unwind_memo *memo, const void *ucontext,
                       const uint64_t *trace, int index, unsigned place, uintptr_t *value)
{
	const struct code_map *map = code_map_current();
	unsigned words = place > OPCODE_SLOT ? place - OPCODE_SLOT : 0;

	if (place == 0 || (words == 0 && (map == NULL || map->rules == NULL || code_map_moved(map))))
		return false;
	while (words == 0 && index > 0)
		if (!rules_find_saved(map, trace[--index], place - 1, &words))
			return false;
	if (words == 0) {
		*value = arch_register(ucontext, place - 1);
		return true;
	}
	const uintptr_t sp = unwind_memo_sp(memo, index), cfa = unwind_memo_sp(memo, index + 1);
	return words * WORD <= cfa - sp && unwind_read_words(&thread->stack, cfa - words * WORD, value, 1);
}

/* The number of the statement's frame, -1: it is not on the stack. */
static int find_frame(const struct opcode_places *at, const struct unwind_memo *memo, uintptr_t end,
                      const uint64_t *trace, int depth)
{
	const uintptr_t start = at->start, size = at->end - start;
	int found = -1;

	for (int i = 0; i + 1 < depth; i++)
		if (__builtin_expect(trace[i] - start < size, 0)) {
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
	uint32_t number = OPCODE_UNKNOWN;
	uintptr_t address;
	int index = -1;

	if (statement == NULL)
		return OPCODE_UNKNOWN;
	if (at != NULL && tag->frame != 0 && unwound->kept)
		index = find_frame(at, memo, tag->frame, trace, unwound->depth);
	if (index >= 0 && (trigger = (const void *)word_at(statement, at->frame)) != NULL)
		number = calling_opcode(at, trigger);
	else if (index >= 0 && read_place(thread, memo, ucontext, trace, index,
	                                  at->places[trace[index] - at->start], &address))
		number = number_of(at, statement, address);
	if (number == OPCODE_UNKNOWN)
		thread_count(thread, LEDGER_NO_OPCODE, 1);
	return number;
}
