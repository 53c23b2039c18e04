/*
 * What executable code is mapped, as the unwinder sees it inside the signal
 * handler: an immutable table sorted by address, replaced whole by src/modules
 * and published with one pointer store.
 *
 * `generation` is part of every sample, so that an address is never read against
 * a map other than its own. Rules live as long as the code they were made for:
 * maps that differ only by objects that came share one rule cache; once an
 * object went, `epoch` moves on and an empty cache takes its place.
 *
 * Between a dlclose and the next map the rules of what went are still there, and
 * the next dlopen may put other code in their place before we know. So a map also
 * remembers words of the loader's own memory that change with every object that
 * comes or goes (modules/watch.c finds them). Who is about to use the map looks
 * at them first: a word moved means that the map and its rules may be about code
 * of before. New code runs only after its loader has counted it, so no rule is
 * ever used for code that took another's address.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_CODE_MAP_H
#define QUERYPROF_HANDLER_UNWIND_CODE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct code_range {
	uintptr_t start, end;             /* one executable segment */
	uintptr_t eh_frame_hdr;           /* address of .eh_frame_hdr, 0: none */
	uintptr_t eh_frame_hdr_end;       /* its end */
	uintptr_t cfi_start, cfi_end;     /* readable memory around it: bounds for CFI reads */
	uintptr_t image_start, image_end; /* the whole object */
};

/* A word of the loader's, and what it was when the map was taken. */
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

/* A map of nothing, whose users ask the loader about each address. */
extern const struct code_map code_map_nothing;

/* Whether the loader has mapped or unmapped anything since the map was taken.
 * Async-signal-safe. */
static inline bool code_map_moved(const struct code_map *map)
{
	uint64_t differs = 0;

	/* Relaxed: a thread that runs new code was told of it by the one that loaded
	 * it, and with that it sees the loader's count, too. */
	for (uint32_t i = 0; i < map->watches; i++)
		differs |= __atomic_load_n(map->watch[i].word, __ATOMIC_RELAXED) ^ map->watch[i].value;
	return differs != 0;
}

/* Makes `map` the one that handlers use from now on. The previous map, and its
 * rules when the epoch moved on, must stay readable until nobody can be using them:
 * the sampler's handlers (sampler_quiesce) and who is between code_map_enter() and
 * code_map_leave() (code_map_readers). */
void code_map_publish(const struct code_map *map);

/* Around uses of a map outside the sampler's handlers. Async-signal-safe, nest.
 * code_map_leave() takes what code_map_enter() gave. */
unsigned code_map_enter(void);
void code_map_leave(unsigned side);

/* Who reads a map of before is on one of two sides. To wait for all: turn, wait
 * until the side that it returned has no readers, and once again both. */
unsigned code_map_turn(void);
uint32_t code_map_readers(unsigned side);

/* What code_map_publish() stores. */
extern const struct code_map *code_map_published __attribute__((visibility("hidden")));

/* Async-signal-safe. NULL before the first publish. Inline, as it may be all that an
 * unchanged stack has to call. */
static inline const struct code_map *code_map_current(void)
{
	return __atomic_load_n(&code_map_published, __ATOMIC_ACQUIRE);
}

/* The range that holds `address`, NULL when none does. Async-signal-safe. */
const struct code_range *code_map_find(const struct code_map *map, uintptr_t address);

#endif
