/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jumps by tables in a function's code, and the look at the opcode before the one that goes by opcodes.
 *
 * A jump's table is named right before it, or in front of the loop that the jump is in: then the table's
 * address is followed from there to the jump, through registers and slots, as the opcode's will be.
 */
#ifndef QUERYPROF_SQLITE_OPCODE_TABLES_H
#define QUERYPROF_SQLITE_OPCODE_TABLES_H

#include "sqlite/opcode/graph.h"

/* False: no jump goes by opcodes, or there are too many jumps. */
bool tables_find(struct graph *graph);

#endif
