/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/code_map.h"

#include <stddef.h>

const struct code_map *code_map_published;

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
