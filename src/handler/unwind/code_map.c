/*
 * The pointer that src/modules stores and the handler loads once for each trace, and the
 * count of the readers outside the sampler's handlers.
 */
#include "handler/unwind/code_map.h"

#include <stddef.h>

const struct code_map code_map_nothing = { 0 };

const struct code_map *code_map_published;

void code_map_publish(const struct code_map *map)
{
	/* Release: a handler that sees the pointer sees the table. */
	__atomic_store_n(&code_map_published, map, __ATOMIC_RELEASE);
}

/* A new reader counts itself on the open side. A turn opens the other side, so the readers of
 * the first only leave. A reader may choose a side just before the turn and count itself just
 * after it: hence the second turn. Sequentially consistent: the reader's count comes before
 * its load of the map. */
static uint32_t open_side;
static uint32_t readers[2];

unsigned code_map_enter(void)
{
	const unsigned side = __atomic_load_n(&open_side, __ATOMIC_SEQ_CST) & 1;

	__atomic_fetch_add(&readers[side], 1, __ATOMIC_SEQ_CST);
	return side;
}

void code_map_leave(unsigned side)
{
	__atomic_fetch_sub(&readers[side], 1, __ATOMIC_SEQ_CST);
}

unsigned code_map_turn(void)
{
	return __atomic_fetch_add(&open_side, 1, __ATOMIC_SEQ_CST) & 1;
}

uint32_t code_map_readers(unsigned side)
{
	return __atomic_load_n(&readers[side], __ATOMIC_SEQ_CST);
}

const struct code_range *code_map_find(const struct code_map *map, uintptr_t address)
{
	uint32_t low = 0, high = map->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (map->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < map->count && map->ranges[low].start <= address)
		return &map->ranges[low];
	return NULL;
}
