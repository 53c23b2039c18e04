/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a frame of optimized code, as V8 13 and later would make frames of them if it discarded
 * the code.
 *
 * Each place in the code that calls something has an entry in a table after the instructions. It leads to a
 * list of frames, the oldest first, each with its function and bytecode. V8's own stacks use this, too: the
 * positions of such code are complete only in earlier versions.
 *
 * The list is a program for the deoptimizer: instructions with operands, which also tell where each value is.
 * To save space it may repeat instructions of an earlier list.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "interpreter/node_position.h"

/* Code that Maglev made has another table than TurboFan's. */
struct node_call {
	uintptr_t code;
	uintptr_t table; /* after the instructions */
	uint32_t offset; /* of the instruction after the call */
	bool is_maglev;
};

/* The newest first. 0: not understood. */
unsigned node_deopt_places(const struct node_reader *reader, const struct node_call *call,
                           struct node_place places[NODE_PLACES_MAX]);
