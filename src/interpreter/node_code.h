/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in its source a frame of JavaScript is.
 *
 * A function is interpreted, or a compiler has translated it. The address to which the frame returns tells
 * which: the same function may have frames of several kinds. The interpreter's own code is among V8's
 * builtins, and its frames contain the bytecode's position. Compiled code is an object: the search goes
 * backwards from the address to the object's beginning, and the object names its code's bounds, which must
 * contain the address. A frame of optimized code may stand for several functions, one inlined into the other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "interpreter/node_position.h"

struct node_frame {
	uintptr_t at;     /* as in the register of frames */
	uintptr_t next;   /* the instruction that it continues with */
	uintptr_t shared; /* the function as the source has it */
	/* The code that V8 brings along, and its copy near the code that it makes. */
	uintptr_t builtins, copied;
	size_t builtins_size, copied_size;
};

/* The functions of a frame, the newest first. 0: the frame is not understood. */
unsigned node_places(const struct node_reader *reader, const struct node_frame *frame,
                     struct node_place places[NODE_PLACES_MAX]);
