/*
 * One pointer, stored by src/modules and loaded once per trace by the handler.
 */
#include "handler/code_map.h"

#include <stddef.h>

static const struct code_map *current;

void code_map_publish(const struct code_map *map)
{
	/* Release: whoever sees the pointer sees the table behind it. */
	__atomic_store_n(&current, map, __ATOMIC_RELEASE);
}

const struct code_map *code_map_current(void)
{
	return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
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
