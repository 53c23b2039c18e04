/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapped executable code, for the unwinder inside the signal handler: an immutable table sorted
 * by address. src/modules replaces the whole table and publishes it with one pointer store.
 *
 * Every sample carries its map's `generation`, so the flusher resolves an address with the right map.
 * Rules exist as long as the code for which they were made: maps that differ only by loaded objects
 * share one rule cache; when an object is unloaded, `epoch` advances and an empty cache replaces it.
 *
 * Between a dlclose and the next map, the rules of the unloaded object are still cached, and a dlopen
 * may map other code at its addresses. So a map also has words of the loader's memory that change
 * with every loaded and unloaded object (modules/watch.c finds them). The handler compares them
 * before it uses the map; after a change it trusts neither the map nor its rules. New code runs only
 * after the loader has counted its object, so the handler never uses a rule for code that took
 * another object's address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/search.h"

struct code_range {
	uintptr_t start, end;         /* one executable segment */
	uintptr_t eh_frame_hdr;       /* address of .eh_frame_hdr, 0: none */
	uintptr_t eh_frame_hdr_end;   /* its end */
	uintptr_t cfi_start, cfi_end; /* readable memory around it: bounds for CFI reads */
	uintptr_t image_start;        /* the beginning of the object */
	bool is_made;                 /* no object: the loader does not list it */
};

/* A word of the loader's memory, and its value when the map was made. */
#define CODE_MAP_WATCHES 8
struct code_watch {
	const uint64_t *word;
	uint64_t value;
};

struct code_map {
	uint32_t generation; /* from 1, never reused within a process */
	uint32_t epoch;      /* the generation at which an object last went or changed */
	/* unwind_cache_bytes of memory, zero-filled when the epoch began, shared by
	 * the maps of one epoch. NULL: no cache. */
	uint64_t *rules;
	uint32_t count;
	uint32_t watches; /* 0: the loader cannot be watched */
	struct code_watch watch[CODE_MAP_WATCHES];
	struct code_range ranges[];
};

/* Whether the loader has loaded or unloaded an object since the map was made.
 * Async-signal-safe. */
static inline bool code_map_moved(const struct code_map *map)
{
	uint64_t differs = 0;

	/* Relaxed: a thread that runs new code has synchronized with the thread that loaded it,
	 * and so also sees the loader's count. */
	for (uint32_t i = 0; i < map->watches; i++)
		differs |= __atomic_load_n(map->watch[i].word, __ATOMIC_RELAXED) ^ map->watch[i].value;
	return differs != 0;
}

/* The range that holds `address`; NULL: none. Async-signal-safe. */
static inline const struct code_range *code_map_find(const struct code_map *map, uintptr_t address)
{
	const size_t i = SEARCH_COUNT(map->count, n, map->ranges[n].end <= address);

	return i < map->count && map->ranges[i].start <= address ? &map->ranges[i] : NULL;
}
