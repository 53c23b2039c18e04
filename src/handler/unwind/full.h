/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames with all their registers, from the interrupted one on: for the few rows that need more than
 * a frame holds, and for code that reads a register of a caller (sqlite/opcode/locations.c).
 */
#pragma once

#include <stdint.h>

#include "base/code_map.h"
#include "handler/unwind/arch.h"

struct full_frame {
	uintptr_t pc; /* of the code that runs, or the call */
	uint64_t registers[CFI_REGISTERS];
};

void full_begin(struct full_frame *frame, const void *ucontext);

/* To the caller, by the CFI parser's own interpreter. */
enum rule_result full_step(struct full_frame *frame, const struct code_map *map,
                           const struct unwind_bounds *bounds);
