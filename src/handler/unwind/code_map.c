/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/code_map.h"

#include <stddef.h>

const struct code_map *code_map_published;
uint32_t code_map_open_side;
uint32_t code_map_readers[2];

unsigned code_map_enter(void)
{
	const unsigned side = __atomic_load_n(&code_map_open_side, __ATOMIC_SEQ_CST) & 1;

	__atomic_fetch_add(&code_map_readers[side], 1, __ATOMIC_SEQ_CST);
	return side;
}

void code_map_leave(unsigned side)
{
	__atomic_fetch_sub(&code_map_readers[side], 1, __ATOMIC_SEQ_CST);
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
