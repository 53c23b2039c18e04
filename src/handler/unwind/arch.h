/*
 * What the unwinder needs of an architecture: the registers of an interrupted
 * thread, a rule that fits in RULE_BITS, how such a rule is made from an unwind
 * row, and how it is applied to a frame. One header per architecture.
 *
 * A rule says how to get from a frame to its caller with what a frame holds: the
 * address to look up, the stack pointer and the frame pointer. Rows that need
 * more become RULE_FULL and are stepped with all registers.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_ARCH_H
#define QUERYPROF_HANDLER_UNWIND_ARCH_H

#include <stdint.h>

#include "cfi.h"
#include "handler/unwind/stack_copy.h"

#if CFI_RETURN_ADDRESS != CFI_INSTRUCTION_POINTER
#define ARCH_HAS_LINK /* a call leaves the return address in a register */
#endif

/* A signed number of RULE_BITS bits: where its sign is, the offset is, so that the
 * cache's shift to the right makes an address offset of it at once. */
#define RULE_BITS 29
typedef int64_t rule_t;

struct unwind_frame {
	uintptr_t look; /* the address whose rule applies, and what is reported */
	uintptr_t sp, fp;
#ifdef ARCH_HAS_LINK
	uintptr_t link;        /* of an interrupted frame: where it will return to, else 0 */
	const uintptr_t *slot; /* where the return address to this frame was read */
#endif
};

/* Words of the stack that may be read: [low, high), high 8-byte aligned. `copy` is NULL
 * when they can be read as they stand, else what they are read through. */
struct unwind_bounds {
	uintptr_t low, high;
	struct stack_copy *copy;
};

/* What applying a rule came to. */
enum rule_result {
	RULE_STEPPED,
	RULE_AT_BOTTOM, /* the frame has no caller */
	RULE_OUT_OF_BOUNDS,
	RULE_NEEDS_ALL, /* RULE_FULL */
	RULE_AT_START,  /* as RULE_AT_BOTTOM when the frame was left by a call, else as the next */
	RULE_HAS_NONE,  /* code without unwind information */
	RULE_NOT_CODE,  /* no object holds this address: code made at run time */
};

/* What a rule reads can be checked later by reading it again, see the memo in
 * unwind.c: `fp_slot` is where the caller's frame pointer was saved, 0 when it is
 * unchanged, FP_SLOT_OPAQUE when the rule read anything else but the return
 * address. */
#define FP_SLOT_OPAQUE 1

/* For an address known to be aligned. One comparison: below `low` the difference
 * wraps. */
static inline int unwind_is_inside(const struct unwind_bounds *bounds, uintptr_t address)
{
	return address - bounds->low <= bounds->high - bounds->low - sizeof(uintptr_t);
}

static inline int unwind_can_read(const struct unwind_bounds *bounds, uintptr_t address)
{
	return unwind_is_inside(bounds, address) && (address & 7) == 0;
}

/* Reads the word at an address within the bounds; 0 when it is not there. */
static inline int unwind_load(const struct unwind_bounds *bounds, uintptr_t address, uintptr_t *value)
{
	if (__builtin_expect(bounds->copy != NULL, 0))
		return stack_copy_read(bounds->copy, address, value, sizeof *value);
	*value = *(const uintptr_t *)address;
	return 1;
}

/* Reads `count` words. */
static inline int unwind_load_words(const struct unwind_bounds *bounds, uintptr_t address, uintptr_t *values,
                                    unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!unwind_can_read(bounds, address + 8 * i) ||
		    !unwind_load(bounds, address + 8 * i, &values[i]))
			return 0;
	return 1;
}

/* CFI_FOR_AARCH64: its rules, tested on any machine. */
#if defined(__aarch64__) || defined(CFI_FOR_AARCH64)
#include "handler/unwind/aarch64.h"
#elif defined(__x86_64__)
#include "handler/unwind/x86_64.h"
#else
#error "no unwinder for this architecture yet"
#endif

#endif
