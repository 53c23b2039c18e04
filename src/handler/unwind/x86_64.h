/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64. A rule, from bit 0: its kind (4 bits), how many words below the CFA the caller's rbp is
 * saved (8 bits, 0: it is unchanged), and a signed offset in words (17 bits) from the stack pointer
 * or the frame pointer to the CFA. The return address is always in the word below the CFA.
 *
 * This covers nearly every row of compiled code. RULE_FULL are realigned stacks (gcc's DRAP: the CFA
 * itself saved below rbp; 3 of 11,000 functions of libcrypto, none of SQLite, glibc, libstdc++), the
 * lazy PLT's expression, and OpenSSL's assembly, which saves the old rsp on the stack.
 */
#pragma once

#include <stddef.h>
#include <ucontext.h>

#define ARCH_RED_ZONE 128

#define RULE_OFFSET_BITS 17
#define RBP_MAX_WORDS 255

#define RULE_OFFSET_SHIFT 12

/* The rule for a row whose offset is in bytes; RULE_FULL when it does not fit. */
static inline rule_t rule_make_checked(enum rule_kind kind, int64_t bytes, uint32_t rbp)
{
	const int64_t limit = (int64_t)1 << (RULE_OFFSET_BITS - 1);
	if (bytes % 8 != 0 || bytes / 8 < -limit || bytes / 8 >= limit)
		return RULE_FULL;
	return bytes / 8 * (1 << RULE_OFFSET_SHIFT) + (rule_t)(rbp << 4) + (rule_t)kind;
}

static inline rule_t rule_from_row(const struct cfi_row *row)
{
	uint32_t rbp = 0;

	if (row->signal_frame)
		return RULE_SIGNAL;
	if (row->return_address.saved == CFI_UNDEFINED)
		return RULE_BOTTOM;
	if (row->return_address.saved != CFI_AT_CFA || row->return_address.value != -8)
		return RULE_FULL;

	if (row->frame_pointer.saved == CFI_AT_CFA && row->frame_pointer.value < 0 &&
	    row->frame_pointer.value % 8 == 0 && row->frame_pointer.value >= -8 * RBP_MAX_WORDS)
		rbp = (uint32_t)(-row->frame_pointer.value / 8);
	else if (row->frame_pointer.saved != CFI_SAME)
		return RULE_FULL;
	if (row->cfa_by_expression ||
	    (row->cfa_register != CFI_STACK_POINTER && row->cfa_register != CFI_FRAME_POINTER))
		return RULE_FULL;
	return rule_make_checked(row->cfa_register == CFI_STACK_POINTER ? RULE_SP : RULE_FP, row->cfa_offset,
	                         rbp);
}

/* The place of each DWARF register in a ucontext. */
static const uint8_t arch_register_order[CFI_REGISTERS] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
	REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

/* From a signal's trampoline to the frame that the signal interrupted; 0: the registers may not be
 * read. The kernel puts a ucontext at the trampoline's rsp. */
static inline int arch_signal_frame(struct unwind_frame *frame, const struct unwind_bounds *bounds)
{
	const uintptr_t registers = frame->sp + offsetof(ucontext_t, uc_mcontext.gregs);
	struct unwind_frame next;
	if (!unwind_load_checked(bounds, registers + 8 * REG_RIP, &next.pc) ||
	    !unwind_load_checked(bounds, registers + 8 * REG_RBP, &next.fp) ||
	    !unwind_load_checked(bounds, registers + 8 * REG_RSP, &next.sp))
		return 0;
	*frame = next;
	return 1;
}

static inline uintptr_t rule_offset(rule_t rule)
{
	return (uintptr_t)((rule >> RULE_OFFSET_SHIFT) * 8);
}

/* Turns *frame into its caller by a plain rule; *frame is unchanged unless RULE_STEPPED. */
__attribute__((always_inline)) static inline enum rule_result
rule_apply(rule_t rule, struct unwind_frame *frame, const struct unwind_bounds *bounds, uintptr_t *fp_slot)
{
	/* The two kinds differ in one bit, and the choice is not a branch that could be
	 * mispredicted. */
	const uintptr_t cfa = ((rule & RULE_FP) != 0 ? frame->fp : frame->sp) + rule_offset(rule);
	const uint32_t saved = (uint32_t)rule >> 4 & RBP_MAX_WORDS;
	const uintptr_t slot = saved != 0 ? cfa - 8 * (uintptr_t)saved : 0;
	uintptr_t return_address, fp = frame->fp;

	/* The stack is finite and the CFA rises with every frame: no loop. One
	 * comparison for both: at or below sp the difference wraps. */
	if (cfa - 8 - frame->sp >= bounds->high - frame->sp || (cfa & 7) != 0 ||
	    (saved != 0 && !unwind_can_read(bounds, slot)) || !unwind_load(bounds, cfa - 8, &return_address))
		return RULE_OUT_OF_BOUNDS;
	if (return_address == 0)
		return RULE_AT_BOTTOM;
	if (saved != 0 && !unwind_load(bounds, slot, &fp))
		return RULE_OUT_OF_BOUNDS;
	frame->fp = fp;
	frame->pc = return_address - 1;
	frame->sp = cfa;
	*fp_slot = slot;
	return RULE_STEPPED;
}

/* The present value of the slot from which the step to `frame` read the return address; that
 * step was not opaque. */
static inline uintptr_t arch_return_address(const struct unwind_frame *frame)
{
	return *(const uintptr_t *)(frame->sp - 8);
}

/* The frame of these registers. */
static inline struct unwind_frame arch_frame_of(const uint64_t registers[CFI_REGISTERS], uintptr_t pc)
{
	return (struct unwind_frame){
		.pc = pc,
		.sp = (uintptr_t)registers[CFI_STACK_POINTER],
		.fp = (uintptr_t)registers[CFI_FRAME_POINTER],
	};
}

static inline struct unwind_frame arch_interrupted_frame(const void *ucontext)
{
	const greg_t *registers = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;
	return (struct unwind_frame){
		.pc = (uintptr_t)registers[REG_RIP],
		.sp = (uintptr_t)registers[REG_RSP],
		.fp = (uintptr_t)registers[REG_RBP],
	};
}

/* By DWARF number. */
static inline uint64_t arch_register(const void *ucontext, unsigned number)
{
	return (uint64_t)((const ucontext_t *)ucontext)->uc_mcontext.gregs[arch_register_order[number]];
}
