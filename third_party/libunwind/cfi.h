/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LLVM libunwind's DWARF half, as C sees it: the unwind row in force at an
 * address, and one step with all registers for rows too rich for a compact rule.
 *
 * Async-signal-safe: no allocation, no lock, no loader call. Input is taken as
 * it comes: unwind information is read only within the bounds of its section's
 * memory, the stack only within its own, and whatever is malformed ends the call
 * with CFI_MALFORMED.
 */
#ifndef QUERYPROF_CFI_H
#define QUERYPROF_CFI_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Registers by DWARF number, the instruction pointer last. */
#if defined(__aarch64__) || defined(CFI_FOR_AARCH64)
#define CFI_FRAME_POINTER 29
#define CFI_RETURN_ADDRESS 30
#define CFI_STACK_POINTER 31
#define CFI_INSTRUCTION_POINTER 32
#define CFI_REGISTERS 33
#elif defined(__x86_64__)
#define CFI_FRAME_POINTER 6
#define CFI_STACK_POINTER 7
#define CFI_RETURN_ADDRESS 16
#define CFI_INSTRUCTION_POINTER 16
#define CFI_REGISTERS 17
#else
#error "no unwinder for this architecture yet"
#endif

/* Where the unwind information of one object is. */
struct cfi_section {
	uintptr_t header, header_end; /* .eh_frame_hdr */
	uintptr_t start, end;         /* readable memory around it: bounds for all reads */
};

enum cfi_result {
	CFI_FOUND,
	CFI_NO_ENTRY, /* no function of the table holds the address */
	CFI_MALFORMED,
	CFI_BAD_READ, /* a stack slot outside the stack */
};

enum cfi_rule {
	CFI_SAME,   /* unchanged */
	CFI_AT_CFA, /* saved at CFA + value */
	CFI_UNDEFINED,
	CFI_OTHERWISE,
};

struct cfi_register {
	enum cfi_rule saved;
	int64_t value;
};

struct cfi_row {
	uintptr_t function_start, function_end;
	bool signal_frame; /* a trampoline that returns from a signal */
	bool eh_return;    /* saves the two registers that an exception brings to
	                    * where it lands: it may return into any frame */
	bool cfa_by_expression;
	uint32_t cfa_register;
	int32_t cfa_offset;
	struct cfi_register return_address, frame_pointer;
};

/* The row in force at `pc`: pass an interrupted address as it is, a return
 * address less one. */
enum cfi_result cfi_find_row(const struct cfi_section *section, uintptr_t pc, struct cfi_row *row);

/* Where one register of the caller's is, by its DWARF number. */
enum cfi_result cfi_find_register(const struct cfi_section *section, uintptr_t pc, unsigned number,
                                  struct cfi_register *saved);

/* Where the stack may be read. `read` is NULL when it can be as it stands; else it is
 * what it is read with, and may refuse. */
struct cfi_stack {
	uintptr_t start, end;
	bool (*read)(void *context, uintptr_t address, void *to, unsigned size);
	void *context;
};

/* Replaces `registers` by the caller's. `pc` as above. `signal_frame`: whether the frame left was a
 * signal's trampoline, so that the new instruction pointer is exact. A new
 * instruction pointer of 0 is the bottom of the stack. */
enum cfi_result cfi_step(const struct cfi_section *section, uintptr_t pc, const struct cfi_stack *stack,
                         uint64_t registers[CFI_REGISTERS], bool *signal_frame);

#ifdef __cplusplus
}
#endif
#endif
