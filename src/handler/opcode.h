/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which opcode of its program a SQLite statement was executing.
 *
 * SQLite's interpreter keeps the address of the running opcode in a few registers and stack
 * slots of its frame; which ones, watch/opcode_places.c finds out for each library. A place
 * that does not hold the address of an opcode of the statement's own program says nothing.
 */
#ifndef QUERYPROF_HANDLER_OPCODE_H
#define QUERYPROF_HANDLER_OPCODE_H

#include "handler/thread.h"

#define OPCODE_PLACES 8
#define OPCODE_UNKNOWN UINT32_MAX

/* Where one library has it. A place > 0 is so many words below the CFA of the interpreter's
 * frame; the others are -1 less the DWARF number of a register. */
struct opcode_places {
	uintptr_t start, end;            /* the interpreter's code */
	uint32_t op_bytes;               /* from one opcode to the next: */
	uint32_t op_shift;               /* an odd number, shifted so far to the left, */
	uint64_t op_inverse;             /* which times this is 1 */
	uint32_t a_op, n_op, frame;      /* in the statement: opcodes, how many, innermost trigger's frame */
	uint32_t frame_parent, frame_pc; /* in that frame: the next one, the opcode that it interrupted */
	uint32_t count;
	int32_t places[OPCODE_PLACES]; /* the best first */
};

/* The number of the opcode that the tag's statement executed, OPCODE_UNKNOWN: not known. While
 * a trigger runs it is the opcode that called it. The thread's trace was unwound from `ucontext` just
 * now. */
uint32_t opcode_running(struct thread *thread, const struct query_tag *tag, const void *ucontext,
                        const uint64_t *trace, const struct unwind_result *unwound);

#endif
