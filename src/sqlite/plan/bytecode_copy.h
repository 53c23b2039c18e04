/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytecode that a statement executes: its own, and the bytecode that it calls, which belongs to
 * its triggers and the actions of foreign keys.
 */
#pragma once

#include "base/vector.h"
#include "sqlite/opcode/locations.h"

/* Whether the opcode calls bytecode, which its P4 names. */
static inline bool opcode_calls(const struct opcode_library *library, const struct opcode_bytes *opcode)
{
	return !strcmp(library->names[opcode->opcode], "Program");
}

/* A copy of that bytecode's opcodes, for opcode_at(), and their number. NULL: it cannot be read,
 * or memory ran out. */
void *bytecode_copy_called(const struct opcode_library *library, const struct opcode_bytes *caller,
                           uint32_t *count);

/* The statement's own opcodes, then those of the bytecode that each of them calls, in order; and
 * their numbers. Starts as { 0 }. */
struct bytecode_copy {
	VECTOR(struct opcode_bytes) opcodes;
	VECTOR(uint32_t) counts;
};

/* False: as above, or they are more opcodes than `most`. */
bool bytecode_copy_read(struct bytecode_copy *copy, const struct opcode_library *library,
                        const void *bytecode, uint32_t count, size_t most);

void bytecode_copy_free(struct bytecode_copy *copy);
