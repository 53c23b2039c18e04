/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder's interface to an architecture: the registers of an interrupted thread, a
 * rule that fits in RULE_BITS, how to make such a rule from an unwind row, and how to
 * apply it to a frame. Each architecture has one header.
 *
 * A rule leads from a frame to its caller. It uses only what a frame holds: an address,
 * the stack pointer and the frame pointer. A row that needs more becomes RULE_FULL, and
 * the step is made with all registers.
 */
#pragma once

#include <stdint.h>

#include "cfi.h"
#include "handler/unwind/stack_copy.h"

#if CFI_RETURN_ADDRESS != CFI_INSTRUCTION_POINTER
#define ARCH_HAS_LINK /* a call leaves the return address in a register */
#endif

/* A signed number of RULE_BITS bits. The offset is in its highest bits, with the sign: the
 * arithmetic shift that takes the rule out of a cache word extends the offset, too. */
#define RULE_BITS 29
typedef int64_t rule_t;

/* In its lowest four bits. */
enum rule_kind {
	RULE_UNSET,  /* an empty cache slot */
	RULE_SP,     /* CFA = stack pointer + offset */
	RULE_FP,     /* CFA = frame pointer + offset */
	RULE_LINK,   /* as RULE_SP, the return address is still in its register */
	RULE_SIGNAL, /* the kernel's frame: registers in a ucontext above the stack pointer */
	RULE_FULL,
	RULE_BOTTOM,
	RULE_NONE,      /* code whose unwind information cannot be used */
	RULE_START,     /* the same, in front of a function's first instruction */
	RULE_NOWHERE,   /* not in any object; never kept in the cache */
	RULE_HOLE,      /* no unwind information for this code */
	RULE_TABLELESS, /* nor for any of the object */
};

/* Whether rule_apply() has everything that it needs, as for nearly all rules. */
static inline int rule_is_plain(rule_t rule)
{
	return (rule & 15) <= RULE_LINK;
}

struct unwind_frame {
	uintptr_t pc; /* its rule applies, and the stack shows it */
	uintptr_t sp, fp;
#ifdef ARCH_HAS_LINK
	uintptr_t link;        /* the return address of an interrupted frame, else 0 */
	const uintptr_t *slot; /* the address from which the walk read the return address to this frame */
#endif
};

/* A frame of the last stack of a thread. fp_slot: how `at` follows from the frame before it. */
struct memo_frame {
	struct unwind_frame at;
	uintptr_t fp_slot;
};

/* The walk may read the words in [low, high) of the stack; high is 8-byte aligned. `copy` is
 * NULL when plain loads are safe there; otherwise all reads go through it. */
struct unwind_bounds {
	uintptr_t low, high;
	struct stack_copy *copy;
};

/* The result of a step. */
enum rule_result {
	RULE_STEPPED,
	RULE_AT_BOTTOM, /* the frame has no caller */
	RULE_OUT_OF_BOUNDS,
	RULE_LEADS_NOWHERE, /* nothing determines the caller */
	RULE_OTHER_STACK,   /* the caller's frame is on another stack, at the frame pointer */
};

/* The memo in unwind.c checks a step by reading the same words again. `fp_slot` is the slot in
 * which the callee saved the caller's frame pointer; 0: none, it is unchanged; FP_SLOT_OPAQUE: the
 * rule read a word other than that and the return address. */
#define FP_SLOT_OPAQUE 1

/* The address is aligned. One comparison suffices: below `low` the difference wraps. */
static inline int unwind_is_inside(const struct unwind_bounds *bounds, uintptr_t address)
{
	return address - bounds->low <= bounds->high - bounds->low - sizeof(uintptr_t);
}

static inline int unwind_can_read(const struct unwind_bounds *bounds, uintptr_t address)
{
	return unwind_is_inside(bounds, address) && (address & 7) == 0;
}

/* Reads the word at an address within the bounds; 0: the memory cannot be read. */
static inline int unwind_load(const struct unwind_bounds *bounds, uintptr_t address, uintptr_t *value)
{
	if (__builtin_expect(bounds->copy != NULL, 0)) {
		uintptr_t copied = 0; /* not *value, which must stay in a register */
		const int is_read = stack_copy_read(bounds->copy, address, &copied, sizeof(copied));
		*value = copied;
		return is_read;
	}
	*value = *(const uintptr_t *)address;
	return 1;
}

/* The same for any address. */
static inline int unwind_load_checked(const struct unwind_bounds *bounds, uintptr_t address, uintptr_t *value)
{
	return unwind_can_read(bounds, address) && unwind_load(bounds, address, value);
}

/* CFI_FOR_AARCH64: a test of its rules on another machine. */
#if defined(__aarch64__) || defined(CFI_FOR_AARCH64)
#include "handler/unwind/aarch64.h"
#elif defined(__x86_64__)
#include "handler/unwind/x86_64.h"
#else
#error "no unwinder for this architecture yet"
#endif

/* Whether a frame of this rule is always the last. */
static inline int rule_is_bottom(rule_t rule)
{
	return (rule & 15) == RULE_BOTTOM;
}

/* Whether the frame that the rule leads to was interrupted by a signal. */
static inline int rule_leaves_signal(rule_t rule)
{
	return (rule & 15) == RULE_SIGNAL;
}
