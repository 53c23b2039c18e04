/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are two functions the same?
 */
#ifndef QUERYPROF_SYMBOL_ARCHIVE_COMPARE_H
#define QUERYPROF_SYMBOL_ARCHIVE_COMPARE_H

#include "symbol/archive/side.h"

/* Places of the archive's side and those of the object that they turned out to be. */
struct place_map {
	uint64_t *keys, *values; /* key 0: free */
	size_t count, capacity;
};

bool place_map_put(struct place_map *map, uint64_t key, uint64_t value);
uint64_t place_map_get(const struct place_map *map, uint64_t key); /* 0: nothing */
void place_map_free(struct place_map *map);

/* Something that would be true if two functions are the same. */
struct code_guess {
	uint64_t archive, object;
};

struct comparison {
	const struct code_side *object, *archive;
	uint32_t *to_object;  /* function of the archive to one of the object */
	uint32_t *to_archive; /* and back; ARCHIVE_NONE where not known */
	struct place_map data_to_object, data_to_archive;
	VECTOR(struct code_guess) guesses; /* what the last comparison would imply */
	VECTOR(uint32_t) partners;         /* of the archive's instructions, in the last comparison */
	bool is_out_of_memory;
};

/* Instruction by instruction the same, and each place that they name is the same
 * one or may be: then it is among the guesses. `known` counts places that are. Where
 * one side reads an address from the offset table, which takes time, the compiler
 * may do it earlier than the other one computes it: there the instructions between
 * two jumps or calls may come in another order. */
bool compare_equal(struct comparison *comparison, uint32_t archive, uint32_t object, uint32_t *known);

/* Guesses from two functions that are the same one but were compiled differently:
 * places named in surroundings that occur once in each. */
void compare_context(struct comparison *comparison, uint32_t archive, uint32_t object);

#endif
