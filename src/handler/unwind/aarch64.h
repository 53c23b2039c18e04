/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64. A rule, from bit 0: its kind (4 bits), whether the caller's frame pointer was saved (1
 * bit; then in the word below the return address, as in the procedure call standard's frame record),
 * how many words below the CFA the return address was saved (11 bits), and a signed offset in words
 * (13 bits) from the stack pointer or the frame pointer to the CFA.
 *
 * Unlike on x86-64 a call saves nothing: the return address is in x30 until a function has made its
 * frame record, and in functions without calls. Only an interrupted frame is in that state, and only
 * its x30 is known: `link`.
 *
 * Return addresses may be signed (pointer authentication) in the bits above the address. The walk
 * clears these bits; a check of a damaged signature would trap.
 */
#pragma once

/* Linux gives code addresses below 2^48, whatever the size of pointers. */
#define ARCH_CODE_BITS 48
#define ARCH_RED_ZONE 0

#define RULE_OFFSET_BITS 13
#define RULE_OFFSET_SHIFT 16
#define RULE_LINK_SHIFT 5
#define RULE_LINK_MAX_WORDS 2047
#define RULE_FP_SAVED 16

/* The slot of the return address after an opaque step. */
static const uintptr_t arch_no_slot = 0;

static inline uintptr_t arch_strip(uintptr_t address)
{
	return address & ((UINT64_C(1) << ARCH_CODE_BITS) - 1);
}

/* The rule for a row whose offset is in bytes; RULE_FULL when it does not fit. */
static inline rule_t rule_make_checked(enum rule_kind kind, int64_t bytes, int64_t link_words, int fp_saved)
{
	const int64_t limit = (int64_t)1 << (RULE_OFFSET_BITS - 1);
	if (bytes % 8 != 0 || bytes / 8 < -limit || bytes / 8 >= limit)
		return RULE_FULL;
	return bytes / 8 * (1 << RULE_OFFSET_SHIFT) + (link_words << RULE_LINK_SHIFT) +
	       (fp_saved ? RULE_FP_SAVED : 0) + (rule_t)kind;
}

static inline rule_t rule_from_row(const struct cfi_row *row)
{
	const struct cfi_register *link = &row->return_address, *fp = &row->frame_pointer;

	if (row->signal_frame)
		return RULE_SIGNAL;
	if (link->saved == CFI_UNDEFINED)
		return RULE_BOTTOM;
	if (row->cfa_by_expression)
		return RULE_FULL;
	if (link->saved == CFI_SAME)
		return fp->saved == CFI_SAME && row->cfa_register == CFI_STACK_POINTER
		               ? rule_make_checked(RULE_LINK, row->cfa_offset, 0, 0)
		               : RULE_FULL;
	if (link->saved != CFI_AT_CFA || link->value >= 0 || link->value % 8 != 0 ||
	    link->value < -8 * RULE_LINK_MAX_WORDS)
		return RULE_FULL;
	if (fp->saved != CFI_SAME && (fp->saved != CFI_AT_CFA || fp->value != link->value - 8))
		return RULE_FULL;
	if (row->cfa_register != CFI_STACK_POINTER && row->cfa_register != CFI_FRAME_POINTER)
		return RULE_FULL;
	return rule_make_checked(row->cfa_register == CFI_STACK_POINTER ? RULE_SP : RULE_FP, row->cfa_offset,
	                         -link->value / 8, fp->saved == CFI_AT_CFA);
}

/* The kernel puts the registers of an interrupted program after a siginfo_t and the head of a
 * ucontext_t, starting at the trampoline's stack pointer. */
enum {
	SIGNAL_CONTEXT = 128,
	CONTEXT_X0 = 184,
	CONTEXT_SP = CONTEXT_X0 + 31 * 8,
	CONTEXT_PC = CONTEXT_SP + 8,
};

static inline uint64_t context_word(const void *context, unsigned offset)
{
	return *(const uint64_t *)(const void *)((const char *)context + offset);
}

static inline struct unwind_frame arch_interrupted_frame(const void *context)
{
	return (struct unwind_frame){
		.pc = (uintptr_t)context_word(context, CONTEXT_PC),
		.sp = (uintptr_t)context_word(context, CONTEXT_SP),
		.fp = (uintptr_t)context_word(context, CONTEXT_X0 + 29 * 8),
		.link = (uintptr_t)context_word(context, CONTEXT_X0 + 30 * 8),
		.slot = &arch_no_slot,
	};
}

static inline int arch_signal_frame(struct unwind_frame *frame, const struct unwind_bounds *bounds)
{
	const uintptr_t registers = frame->sp + SIGNAL_CONTEXT + CONTEXT_X0;
	struct unwind_frame next = { .slot = &arch_no_slot };
	if (!unwind_load_checked(bounds, registers + 8 * CFI_FRAME_POINTER, &next.fp) ||
	    !unwind_load_checked(bounds, registers + 8 * CFI_RETURN_ADDRESS, &next.link) ||
	    !unwind_load_checked(bounds, registers + 8 * CFI_STACK_POINTER, &next.sp) ||
	    !unwind_load_checked(bounds, registers + 8 * CFI_INSTRUCTION_POINTER, &next.pc))
		return 0;
	*frame = next;
	return 1;
}

static inline uintptr_t rule_offset(rule_t rule)
{
	return (uintptr_t)((rule >> RULE_OFFSET_SHIFT) * 8);
}

/* The return address is in x30, which only an interrupted frame has. */
static inline enum rule_result rule_apply_link(rule_t rule, struct unwind_frame *frame,
                                               const struct unwind_bounds *bounds)
{
	const uintptr_t cfa = frame->sp + rule_offset(rule);
	const uintptr_t return_address = arch_strip(frame->link);

	if (return_address == 0 || cfa < frame->sp || cfa > bounds->high || cfa % 8 != 0)
		return RULE_OUT_OF_BOUNDS;
	*frame = (struct unwind_frame){
		.pc = return_address - 1,
		.sp = cfa,
		.fp = frame->fp,
		.slot = &arch_no_slot,
	};
	return RULE_STEPPED;
}

/* Turns *frame into its caller by a plain rule; *frame is unchanged unless RULE_STEPPED. */
static inline enum rule_result rule_apply(rule_t rule, struct unwind_frame *frame,
                                          const struct unwind_bounds *bounds, uintptr_t *fp_slot)
{
	if ((rule & 15) == RULE_LINK) {
		*fp_slot = FP_SLOT_OPAQUE;
		return rule_apply_link(rule, frame, bounds);
	}
	const uintptr_t cfa = ((rule & RULE_FP) != 0 ? frame->fp : frame->sp) + rule_offset(rule);
	const uintptr_t slot = cfa - ((rule >> RULE_LINK_SHIFT & RULE_LINK_MAX_WORDS) * 8);

	/* The stack is finite and the CFA rises with every frame: no loop. Nothing is
	 * saved below sp. */
	if (cfa <= frame->sp || cfa > bounds->high || slot < frame->sp || !unwind_can_read(bounds, slot))
		return RULE_OUT_OF_BOUNDS;
	*fp_slot = 0;
	if ((rule & RULE_FP_SAVED) != 0) {
		if (!unwind_can_read(bounds, slot - 8))
			return RULE_OUT_OF_BOUNDS;
		*fp_slot = slot - 8;
	}
	uintptr_t return_address, fp = frame->fp;
	if (!unwind_load(bounds, slot, &return_address))
		return RULE_OUT_OF_BOUNDS;
	return_address = arch_strip(return_address);
	if (return_address == 0)
		return RULE_AT_BOTTOM;
	if (*fp_slot != 0 && !unwind_load(bounds, *fp_slot, &fp))
		return RULE_OUT_OF_BOUNDS;
	*frame = (struct unwind_frame){
		.pc = return_address - 1,
		.sp = cfa,
		.fp = fp,
		.slot = (const uintptr_t *)slot,
	};
	return RULE_STEPPED;
}

/* The present value of the slot from which the step to `frame` read the return address; that
 * step was not opaque. */
static inline uintptr_t arch_return_address(const struct unwind_frame *frame)
{
	return arch_strip(*frame->slot);
}

/* By DWARF number. */
static inline uint64_t arch_register(const void *context, unsigned number)
{
	return context_word(context, CONTEXT_X0 + 8 * number);
}

/* The frame of these registers. */
static inline struct unwind_frame arch_frame_of(const uint64_t registers[CFI_REGISTERS], uintptr_t pc)
{
	return (struct unwind_frame){
		.pc = pc,
		.sp = (uintptr_t)registers[CFI_STACK_POINTER],
		.fp = (uintptr_t)registers[CFI_FRAME_POINTER],
		/* An exact address, because the frame was interrupted. */
		.link = pc == registers[CFI_INSTRUCTION_POINTER] ? (uintptr_t)registers[CFI_RETURN_ADDRESS]
		                                                 : 0,
		.slot = &arch_no_slot,
	};
}
