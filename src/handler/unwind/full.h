/*
 * The walk with all registers, for the few rows that need more than a frame holds.
 * It follows the other walk behind: the registers of a frame are those of the
 * interrupted one, stepped as often as it took to get there, and only when a row
 * asks for them.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_FULL_H
#define QUERYPROF_HANDLER_UNWIND_FULL_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/unwind/code_map.h"
#include "handler/unwind/arch.h"

/* The registers of frame number `index`. Begins with `begun` and `lost` false. */
struct full_walk {
	bool begun;
	bool lost; /* it failed once */
	uint32_t index;
	uintptr_t look;
	uint64_t registers[CFI_REGISTERS];
};

/* Makes the interrupted frame that `ucontext` tells of number 0. */
void full_begin(struct full_walk *full, const void *ucontext);

/* Makes the frame that the signal of trampoline *frame interrupted number `index`. */
void full_begin_again(struct full_walk *full, const struct unwind_frame *frame,
                      const struct unwind_bounds *bounds, uint32_t index);

/* One step from frame number `index`, which is `frame`. */
enum rule_result step_full(struct full_walk *full, const void *ucontext, const struct code_map *map,
                           const struct unwind_bounds *bounds, uint32_t index, struct unwind_frame *frame);

#endif
