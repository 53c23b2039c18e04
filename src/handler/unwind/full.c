/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/full.h"

#include "handler/unwind/rules.h"
#include "wire/ledger.h"

void full_begin(struct full_frame *frame, const void *ucontext)
{
	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		frame->registers[i] = arch_register(ucontext, i);
	frame->pc = frame->registers[CFI_INSTRUCTION_POINTER];
}

static bool read_copy(void *context, uintptr_t address, void *to, unsigned size)
{
	return stack_copy_read(context, address, to, size);
}

enum rule_result full_step(struct full_frame *frame, const struct code_map *map,
                           const struct unwind_bounds *bounds)
{
	const struct cfi_stack stack = { bounds->low, bounds->high, bounds->copy ? read_copy : NULL,
		                         bounds->copy };
	const uintptr_t sp = frame->registers[CFI_STACK_POINTER];
	const bool is_exact = frame->pc == frame->registers[CFI_INSTRUCTION_POINTER];
	struct cfi_section section;
	bool signal_frame = false;

	unwind_count(UNWIND_FULL_STEPS);
	if (rules_find_section(map, frame->pc, &section) > SECTION_NEWER || section.header == 0)
		return RULE_LEADS_NOWHERE;
	switch (cfi_step(&section, frame->pc, &stack, frame->registers, &signal_frame)) {
	case CFI_FOUND: break;
	case CFI_BAD_READ: return RULE_OUT_OF_BOUNDS;
	default: return RULE_LEADS_NOWHERE;
	}
	const uintptr_t ip = frame->registers[CFI_INSTRUCTION_POINTER];
	const uintptr_t new_sp = frame->registers[CFI_STACK_POINTER];
	if (ip == 0)
		return RULE_AT_BOTTOM;
	/* Only an interrupted frame may be empty. */
	if (new_sp < sp || (new_sp == sp && !is_exact) || new_sp > bounds->high || new_sp % 8 != 0)
		return RULE_OUT_OF_BOUNDS;
	frame->pc = signal_frame ? ip : ip - 1;
	return RULE_STEPPED;
}
