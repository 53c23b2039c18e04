/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step is one of the CFI parser's own interpreter.
 */
#include "handler/unwind/full.h"

#include "handler/unwind/counters.h"
#include "handler/unwind/rules.h"

void full_begin(struct full_walk *full, const void *ucontext)
{
	arch_all_registers(ucontext, full->registers);
	full->begun = true;
	full->lost = false;
	full->index = 0;
	full->pc = full->registers[CFI_INSTRUCTION_POINTER];
}

void full_begin_again(struct full_walk *full, const struct unwind_frame *frame,
                      const struct unwind_bounds *bounds, uint32_t index)
{
	full->begun = true;
	full->lost = !arch_load_registers(frame, bounds, full->registers);
	full->index = index;
	full->pc = full->registers[CFI_INSTRUCTION_POINTER];
}

static bool read_copy(void *context, uintptr_t address, void *to, unsigned size)
{
	return stack_copy_read(context, address, to, size);
}

/* Not inlined: few walks need its frame. */
__attribute__((noinline)) enum rule_result full_step(struct full_walk *full, const void *ucontext,
                                                     const struct code_map *map,
                                                     const struct unwind_bounds *bounds, uint32_t index,
                                                     struct unwind_frame *frame)
{
	const struct cfi_stack stack = { bounds->low, bounds->high, bounds->copy != NULL ? read_copy : NULL,
		                         bounds->copy };

	if (!full->begun)
		full_begin(full, ucontext);
	while (!full->lost && full->index <= index) {
		struct cfi_section section;
		bool signal_frame = false;
		const uintptr_t sp = full->registers[CFI_STACK_POINTER];

		if (full->index == index && (full->pc != frame->pc || sp != frame->sp))
			break;
		unwind_count(UNWIND_FULL_STEPS);
		full->lost = true;
		const enum section_result found = rules_find_section(map, full->pc, &section);
		if ((found != SECTION_LASTING && found != SECTION_NEWER) || section.header == 0)
			return RULE_HAS_NONE;
		switch (cfi_step(&section, full->pc, &stack, full->registers, &signal_frame)) {
		case CFI_FOUND: break;
		case CFI_BAD_READ: return RULE_OUT_OF_BOUNDS;
		default: return RULE_HAS_NONE;
		}
		const uintptr_t ip = full->registers[CFI_INSTRUCTION_POINTER];
		const uintptr_t new_sp = full->registers[CFI_STACK_POINTER];
		if (ip == 0)
			return RULE_AT_BOTTOM;
		/* Only the interrupted frame may be empty. */
		if (new_sp < sp || (new_sp == sp && full->index > 0) || new_sp > bounds->high ||
		    new_sp % 8 != 0)
			return RULE_OUT_OF_BOUNDS;
		full->lost = false;
		full->index++;
		full->pc = signal_frame ? ip : ip - 1;
	}
	if (full->lost || full->index != index + 1)
		return RULE_OUT_OF_BOUNDS; /* the two walks disagree: trust neither */
	*frame = arch_frame_of(full->registers, full->pc);
	return RULE_STEPPED;
}
