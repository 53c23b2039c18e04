/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk with all registers, for the few rows that need more than a frame holds. It
 * begins at the interrupted frame when the other walk first meets such a row, and catches
 * up by stepping through the same frames.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_FULL_H
#define QUERYPROF_HANDLER_UNWIND_FULL_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/unwind/arch.h"
#include "handler/unwind/code_map.h"

/* The registers of frame number `index`. At first `begun` and `lost` are false. */
struct full_walk {
	bool begun;
	bool lost; /* a step failed */
	uint32_t index;
	uintptr_t pc;
	uint64_t registers[CFI_REGISTERS];
};

/* Begins with the interrupted frame in `ucontext` as number 0. */
void full_begin(struct full_walk *full, const void *ucontext);

/* Begins again behind a signal trampoline *frame: the frame that the signal interrupted is
 * number `index`. */
void full_begin_again(struct full_walk *full, const struct unwind_frame *frame,
                      const struct unwind_bounds *bounds, uint32_t index);

/* One step from frame number `index`, which is `frame`. */
enum rule_result full_step(struct full_walk *full, const void *ucontext, const struct code_map *map,
                           const struct unwind_bounds *bounds, uint32_t index, struct unwind_frame *frame);

#endif
