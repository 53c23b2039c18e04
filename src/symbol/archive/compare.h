/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are two functions the same?
 */
#pragma once

#include "base/hash_table.h"
#include "symbol/archive/side.h"

/* A location of one side, and that of the other side which it turned out to be. */
struct location {
	struct hash key;
	uint64_t other;
};

#define LOCATIONS HASH_TABLE_OF(struct location, SIZE_MAX)

bool locations_put(struct hash_table *locations, uint64_t location, uint64_t other); /* false: no memory */
uint64_t locations_get(const struct hash_table *locations, uint64_t location);       /* 0: nothing */

/* Something that would be true if two functions are the same. */
struct code_guess {
	uint64_t archive, object;
};

struct comparison {
	const struct code_side *object, *archive;
	uint32_t *to_object;                               /* function of the archive to one of the object */
	uint32_t *to_archive;                              /* and back; ARCHIVE_NONE where not known */
	struct hash_table data_to_object, data_to_archive; /* of struct location */
	VECTOR(struct code_guess) guesses;                 /* what the last comparison would imply */
	VECTOR(uint32_t) partners; /* of the archive's instructions, in the last comparison */
	bool is_out_of_memory;
};

/* Instruction by instruction the same, and each location that they name is the same
 * one or may be: then it is among the guesses. `known` counts locations that are. Where
 * one side reads an address from the offset table, which takes time, the compiler
 * may do it earlier than the other one computes it: there the instructions between
 * two jumps or calls may come in another order. */
bool compare_equal(struct comparison *comparison, uint32_t archive, uint32_t object, uint32_t *known);

/* Guesses from two functions that are the same one but were compiled differently:
 * locations named in surroundings that occur once in each. */
void compare_context(struct comparison *comparison, uint32_t archive, uint32_t object);
