/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which opcode of its bytecode a SQLite statement was executing.
 *
 * SQLite's interpreter keeps the address of the running opcode in a register or a stack slot of its
 * frame. sqlite/opcode/locations.c finds that location for each instruction of each library. A value that
 * is not the address of an opcode of the bytecode that the statement executes is ignored.
 */
#pragma once

#include "handler/thread.h"

#define OPCODE_SLOT 32
#define OPCODE_UNKNOWN UINT32_MAX

/* Where one library has it. A location above OPCODE_SLOT is a slot, a number of words below the
 * CFA of the interpreter's frame; another one is a register, its DWARF number plus 1; 0: not
 * known. */
struct opcode_locations {
	uintptr_t start, end;       /* the interpreter's code */
	uint32_t op_bytes;          /* from one opcode to the next: */
	uint32_t op_shift;          /* an odd number, shifted so far to the left, */
	uint64_t op_inverse;        /* which times this is 1 */
	uint32_t a_op, n_op, frame; /* in the statement: opcodes, how many, innermost trigger's frame */
	/* In that frame: the next one, the opcode that it interrupted, and the array of opcodes. */
	uint32_t frame_parent, frame_pc, frame_a_op;
	uint8_t *
		locations; /* for each byte of the code; a call's last one has the location during the call */
} __attribute__((aligned(64))); /* one line of memory */

/* The number of the opcode that the tag's statement executed, OPCODE_UNKNOWN: not known. While a
 * trigger runs it is that of the one that called it, and the upper half has the number of the
 * trigger's own opcode plus 1; 0: not known. The thread's stack was unwound from `ucontext` just
 * now. */
uint64_t opcode_running(struct thread *thread, const struct query_tag *tag, const void *ucontext,
                        const struct unwind_result *unwound);

/* The start of the query's run as published: without bytecode if the statement, which exists, has
 * other opcodes now because SQLite prepared it again. */
struct run_start opcode_start(const struct query_counts *counts);
