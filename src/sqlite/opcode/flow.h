/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where SQLite's interpreter has the address of the running opcode, at each of its instructions.
 *
 * A compiler keeps it where it likes: in one register here, in a slot of the frame there, in another
 * register around the next call. But all of its code begins at one jump, by a table of addresses, on the
 * opcode that a register points to at that moment. From there the code is followed on every way that it has,
 * with the set of registers and slots that hold the address: a move adds to it, any other write takes away,
 * where two ways meet what both have is left. An instruction that is not known here takes all away.
 * So a location that is reported is right, as far as the compiler does not write to its own slots by
 * pointers.
 */
#ifndef QUERYPROF_SQLITE_OPCODE_FLOW_H
#define QUERYPROF_SQLITE_OPCODE_FLOW_H

#include "base/code_map.h"
#include "handler/opcode.h"

/* Fills `locations` with one for each byte of the code, as in struct opcode_locations. False: nothing is
 * known, as the code is of another form or processor, or there is no memory. */
bool opcode_flow_find(const struct code_map *map, uintptr_t start, uintptr_t end, uint8_t *locations);

#endif
