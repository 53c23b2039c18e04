/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions in the source, as V8's tables have them for bytecode and for compiled code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "interpreter/node_heap.h"

#define NODE_PLACES_MAX 32

struct node_place {
	uintptr_t shared;
	int32_t position; /* -1: not known */
};

/* A position has the character after the one that is meant, and the inlined function that it belongs to. */
enum { POSITION_IS_EXTERNAL = 1, POSITION_SHIFT = 1, POSITION_BITS = 30, INLINED_SHIFT = 31 };

static inline int32_t node_position_in_source(uint64_t position)
{
	return position & POSITION_IS_EXTERNAL
	               ? -1
	               : (int32_t)(position >> POSITION_SHIFT & ((1u << POSITION_BITS) - 1)) - 1;
}

static inline unsigned node_position_inlined(uint64_t position)
{
	return position >> INLINED_SHIFT & 0xffff;
}

/* The position of the table's newest entry that is not after `offset`; false: there is none. */
bool node_position_find(const struct node_reader *reader, uintptr_t table, int64_t offset,
                        uint64_t *position);

/* The position in the source of the bytecode at `offset`; -1: not known. */
int32_t node_position_of_bytecode(const struct node_reader *reader, uintptr_t bytecodes, int64_t offset);

/* The number of bytes of the bytecode. */
int32_t node_position_bytecodes(const struct node_reader *reader, uintptr_t bytecodes);

/* The offset of the bytecode to which the instruction at `offset` belongs, in code of the first compiler,
 * which has this table; -1: not known. */
int64_t node_position_bytecode(const struct node_reader *reader, uintptr_t bytecodes, uintptr_t table,
                               uint64_t offset);
