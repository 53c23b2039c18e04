/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vector.h"

#include <stdint.h>
#include <stdlib.h>

#define ROOM_FIRST 16

void *vector_grow(void *items, size_t *room, size_t wanted, size_t item_size)
{
	size_t larger = *room > SIZE_MAX / 2 ? SIZE_MAX : *room * 2;
	void *grown;

	if (items && wanted <= *room)
		return items;
	if (larger < ROOM_FIRST)
		larger = ROOM_FIRST;
	if (larger < wanted)
		larger = wanted;
	grown = reallocarray(items, larger, item_size);
	if (grown)
		*room = larger;
	return grown;
}

void vector_drop(void *items)
{
	free(items);
}
