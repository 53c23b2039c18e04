/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jumps by tables in a function's code, and the read of the opcode before the jump that depends
 * on opcodes.
 *
 * A jump's table is named directly before it, or before the loop that contains the jump: then the
 * table's address is followed from there to the jump, through registers and slots, like the opcode's
 * later.
 */
#pragma once

#include "sqlite/opcode/graph.h"

/* False: no jump goes by opcodes, or there are too many jumps. */
bool tables_find(struct graph *graph);
