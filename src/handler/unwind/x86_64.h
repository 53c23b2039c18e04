/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64. A rule, from bit 0: its kind (4 bits), where the caller's rbp is saved
 * (8 bits: 0 unchanged, RBP_AT_RBP at the address in rbp, otherwise that many words
 * below the CFA), and a signed offset in words (17 bits), whose meaning depends on the
 * kind. The return address is always in the word below the CFA.
 *
 * Nearly every row of compiled code is a plain offset from rsp or rbp. Functions that call
 * others also have realigned stacks (gcc's DRAP: the CFA itself saved below rbp) and the
 * kernel's signal frame. What only leaves have is RULE_FULL: the lazy PLT's expression, and
 * OpenSSL's assembly, which saves the old rsp on the stack.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_X86_64_H
#define QUERYPROF_HANDLER_UNWIND_X86_64_H

#include <stddef.h>
#include <ucontext.h>

#define ARCH_RED_ZONE 128

enum rule_kind {
	RULE_UNSET = 0,        /* an empty cache slot */
	RULE_RSP,              /* CFA = rsp + offset */
	RULE_RBP = RULE_PLAIN, /* CFA = rbp + offset */
	RULE_AT_RBP,           /* CFA = *(rbp + offset) */
	RULE_SIGNAL,           /* the kernel's frame: registers in a ucontext at rsp */
	RULE_FULL,
	RULE_BOTTOM,
	RULE_NONE,      /* code whose unwind information cannot be used */
	RULE_START,     /* the same, in front of a function's first instruction */
	RULE_NOWHERE,   /* not in any object; never kept in the cache */
	RULE_HOLE,      /* no unwind information for this code */
	RULE_TABLELESS, /* nor for any of the object */
};

#define RULE_OFFSET_BITS 17
#define RBP_AT_RBP 255u
#define RBP_MAX_WORDS 254

#define RULE_OFFSET_SHIFT 12

static inline rule_t rule_make(enum rule_kind kind, int64_t words, uint32_t rbp)
{
	return words * (1 << RULE_OFFSET_SHIFT) + (rule_t)(rbp << 4) + (rule_t)kind;
}

/* The rule for a row whose offset is in bytes; RULE_FULL when it does not fit. */
static inline rule_t rule_make_checked(enum rule_kind kind, int64_t bytes, uint32_t rbp)
{
	const int64_t limit = (int64_t)1 << (RULE_OFFSET_BITS - 1);
	if (bytes % 8 != 0 || bytes / 8 < -limit || bytes / 8 >= limit)
		return RULE_FULL;
	return rule_make(kind, bytes / 8, rbp);
}

/* Reads a signed LEB128 at *p; false at the end of the expression. */
static inline int expression_read_sleb(const uint8_t **p, const uint8_t *end, int64_t *value)
{
	uint64_t bits = 0;
	for (unsigned shift = 0; *p < end && shift < 63; shift += 7) {
		const uint8_t byte = *(*p)++;
		bits |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40)
			bits |= ~UINT64_C(0) << (shift + 7);
		*value = (int64_t)bits;
		return 1;
	}
	return 0;
}

/* Recognizes the CFA of a realigned stack, *(rbp + offset), by its bytes. */
static inline rule_t rule_from_expression(const uint8_t *p, uint64_t size, uint32_t rbp)
{
	enum { DEREF = 0x06, BREG_RBP = 0x76 };
	const uint8_t *const end = p + size;
	int64_t offset;

	if (size == 0 || *p++ != BREG_RBP || !expression_read_sleb(&p, end, &offset) || end - p != 1 ||
	    *p != DEREF)
		return RULE_FULL;
	return rule_make_checked(RULE_AT_RBP, offset, rbp);
}

static inline rule_t rule_from_row(const struct cfi_row *row)
{
	uint32_t rbp = 0;

	if (row->signal_frame)
		return RULE_SIGNAL;
	if (row->return_address.place == CFI_UNDEFINED)
		return RULE_BOTTOM;
	if (row->return_address.place != CFI_AT_CFA || row->return_address.value != -8)
		return RULE_FULL;

	switch (row->frame_pointer.place) {
	case CFI_SAME: break;
	case CFI_AT_CFA:
		if (row->frame_pointer.value >= 0 || row->frame_pointer.value % 8 != 0 ||
		    row->frame_pointer.value < -8 * RBP_MAX_WORDS)
			return RULE_FULL;
		rbp = (uint32_t)(-row->frame_pointer.value / 8);
		break;
	case CFI_BY_EXPRESSION: {
		/* Realigned stacks: DW_OP_breg6 0, that is, at the address in rbp. The three
		 * bytes are readable, see CFI_BY_EXPRESSION. */
		const uint8_t *p = (const uint8_t *)(uintptr_t)row->frame_pointer.value;
		if (p[0] != 2 || p[1] != 0x76 || p[2] != 0)
			return RULE_FULL;
		rbp = RBP_AT_RBP;
		break;
	}
	default: return RULE_FULL;
	}

	if (row->cfa_by_expression)
		return rule_from_expression(row->cfa_expression, row->cfa_expression_size, rbp);
	if (row->cfa_register == CFI_STACK_POINTER)
		return rule_make_checked(RULE_RSP, row->cfa_offset, rbp);
	if (row->cfa_register == CFI_FRAME_POINTER)
		return rule_make_checked(RULE_RBP, row->cfa_offset, rbp);
	return RULE_FULL;
}

/* The place of each DWARF register in a ucontext. */
static const uint8_t arch_register_order[CFI_REGISTERS] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
	REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

/* The kernel puts a ucontext where the trampoline's rsp points. */
static inline uintptr_t arch_signal_registers(const struct unwind_frame *frame)
{
	return frame->sp + offsetof(ucontext_t, uc_mcontext.gregs);
}

static inline int arch_signal_frame(struct unwind_frame *frame, const struct unwind_bounds *bounds)
{
	const uintptr_t registers = arch_signal_registers(frame);
	struct unwind_frame next;
	if (!unwind_load_words(bounds, registers + 8 * REG_RIP, &next.pc, 1) ||
	    !unwind_load_words(bounds, registers + 8 * REG_RBP, &next.fp, 1) ||
	    !unwind_load_words(bounds, registers + 8 * REG_RSP, &next.sp, 1))
		return 0;
	*frame = next;
	return 1;
}

/* The last part of a step, from the CFA on. */
__attribute__((always_inline)) static inline enum rule_result rule_step_to(uintptr_t cfa, uint32_t saved,
                                                                           struct unwind_frame *frame,
                                                                           const struct unwind_bounds *bounds,
                                                                           uintptr_t *fp_slot)
{
	/* The stack is finite and the CFA rises with every frame: no loop. One
	 * comparison for both: at or below sp the difference wraps. */
	if (cfa - 8 - frame->sp >= bounds->high - frame->sp || (cfa & 7) != 0)
		return RULE_OUT_OF_BOUNDS;
	uintptr_t slot = 0;
	if (saved != 0) {
		slot = saved == RBP_AT_RBP ? frame->fp : cfa - 8 * (uintptr_t)saved;
		if (!unwind_can_read(bounds, slot))
			return RULE_OUT_OF_BOUNDS;
	}
	uintptr_t return_address, fp = frame->fp;
	if (!unwind_load(bounds, cfa - 8, &return_address))
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

static inline uint32_t rule_saved(rule_t rule)
{
	return (uint32_t)rule >> 4 & 255;
}

static inline uintptr_t rule_offset(rule_t rule)
{
	return (uintptr_t)((rule >> RULE_OFFSET_SHIFT) * 8);
}

/* Whether it is the rule of a function's first instruction: nothing is pushed yet. */
static inline int rule_is_as_called(rule_t rule)
{
	return rule == rule_make(RULE_RSP, 1, 0);
}

/* Whether the frame is found by the stack pointer: its unwind information may be wrong
 * (distrust.h). */
static inline int rule_is_by_sp(rule_t rule)
{
	return (rule & 15) == RULE_RSP;
}

/* rule_apply() for a plain rule. */
__attribute__((always_inline)) static inline enum rule_result
rule_apply_plain(rule_t rule, struct unwind_frame *frame, const struct unwind_bounds *bounds,
                 uintptr_t *fp_slot)
{
	/* The two kinds differ in one bit, and the choice is not a branch that could be
	 * mispredicted. */
	const uintptr_t base = (rule & RULE_RBP) != 0 ? frame->fp : frame->sp;

	return rule_step_to(base + rule_offset(rule), rule_saved(rule), frame, bounds, fp_slot);
}

/* Turns *frame into its caller; *frame is unchanged unless RULE_STEPPED. Not inlined:
 * rule_apply_plain() serves nearly all frames. */
__attribute__((noinline, unused)) static enum rule_result
rule_apply(rule_t rule, struct unwind_frame *frame, const struct unwind_bounds *bounds, uintptr_t *fp_slot)
{
	enum rule_result result;
	uintptr_t cfa;

	switch ((enum rule_kind)(rule & 15)) {
	case RULE_RSP:
	case RULE_RBP: return rule_apply_plain(rule, frame, bounds, fp_slot);
	case RULE_AT_RBP:
		if (!unwind_load_words(bounds, frame->fp + rule_offset(rule), &cfa, 1))
			return RULE_OUT_OF_BOUNDS;
		result = rule_step_to(cfa, rule_saved(rule), frame, bounds, fp_slot);
		*fp_slot = FP_SLOT_OPAQUE;
		return result;
	case RULE_SIGNAL: return RULE_SIGNALLED;
	case RULE_FULL: return RULE_NEEDS_ALL;
	case RULE_BOTTOM: return RULE_AT_BOTTOM;
	case RULE_START: return RULE_AT_START;
	case RULE_NOWHERE: return RULE_NOT_CODE;
	default: return RULE_HAS_NONE;
	}
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

/* All registers, by DWARF number. */
static inline void arch_all_registers(const void *ucontext, uint64_t registers[CFI_REGISTERS])
{
	const greg_t *from = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;
	for (int i = 0; i < CFI_REGISTERS; i++)
		registers[i] = (uint64_t)from[arch_register_order[i]];
}

#endif
