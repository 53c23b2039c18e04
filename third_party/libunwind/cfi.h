/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of LLVM libunwind's DWARF half: the unwind row of an address, and
 * one step with all registers for rows that do not fit into a compact rule.
 *
 * Async-signal-safe: no allocation, no lock, no loader call. The input is not
 * trusted: unwind information is read only within the memory of its section, and the
 * stack only within its bounds. Malformed input ends the call with CFI_MALFORMED.
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
	uintptr_t start, end;         /* readable memory that contains it: bounds of all reads */
};

enum cfi_result {
	CFI_FOUND,
	CFI_NO_ENTRY, /* no function of the table contains the address */
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
	bool eh_return;    /* saves the two registers that carry an exception to its
	                    * landing pad: it may return into any frame */
	bool cfa_by_expression;
	uint32_t cfa_register;
	int32_t cfa_offset;
	struct cfi_register return_address, frame_pointer;
};

/* Finds the row of `pc`: an interrupted address, or a return address minus 1. */
enum cfi_result cfi_find_row(const struct cfi_section *section, uintptr_t pc, struct cfi_row *row);

/* Finds where a register of the caller is saved, by its DWARF number. */
enum cfi_result cfi_find_register(const struct cfi_section *section, uintptr_t pc, unsigned number,
                                  struct cfi_register *saved);

/* The bounds of the stack. If `read` is NULL, it is read directly; otherwise with
 * `read`, which may fail. */
struct cfi_stack {
	uintptr_t start, end;
	bool (*read)(void *context, uintptr_t address, void *to, unsigned size);
	void *context;
};

/* Replaces `registers` by the caller's. `pc` is as in cfi_find_row(). Sets `signal_frame` if the frame
 * was a signal's trampoline; then the new instruction pointer is an interrupted address, not a return
 * address. A new instruction pointer of 0 means the bottom of the stack. */
enum cfi_result cfi_step(const struct cfi_section *section, uintptr_t pc, const struct cfi_stack *stack,
                         uint64_t registers[CFI_REGISTERS], bool *signal_frame);

#ifdef __cplusplus
}
#endif
#endif
