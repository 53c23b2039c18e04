/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/module_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"

/* Number of modules that start at or before the address. */
static size_t count_before(const struct module_map *map, uint64_t address)
{
	return SEARCH_COUNT(map->count, i, map->items[i]->start <= address);
}

const struct module *module_map_find(const struct module_map *map, uint64_t address)
{
	size_t before = count_before(map, address);
	const struct module *last = before ? map->items[before - 1] : NULL;

	return last && address < last->end ? last : NULL;
}

bool module_map_add(struct module_map *map, const struct module *module)
{
	size_t at = count_before(map, module->start);

	if (!vector_reserve(map, map->count + 1))
		return false;
	memmove(map->items + at + 1, map->items + at, (map->count - at) * sizeof(*map->items));
	map->items[at] = module;
	map->count++;
	return true;
}

void module_map_remove(struct module_map *map, size_t index)
{
	map->count--;
	memmove(map->items + index, map->items + index + 1, (map->count - index) * sizeof(*map->items));
}

void module_map_free(struct module_map *map)
{
	vector_free(map);
}

/* It becomes part of paths and of requests to servers, so only content that a note of ELF can have
 * is allowed. */
static bool is_build_id(const char *text)
{
	size_t size = strlen(text);

	return size % 2 == 0 && size <= MODULE_BUILD_ID_MAX && !text[strspn(text, "0123456789abcdef")];
}

struct module *module_copy(const struct module *module)
{
	const char *build_id = is_build_id(module->build_id) ? module->build_id : "";
	size_t path_size = strlen(module->path) + 1, id_size = strlen(build_id) + 1;
	struct module *copy = malloc(sizeof(*copy) + path_size + id_size);

	if (copy) {
		char *text = (char *)(copy + 1);
		*copy = *module;
		copy->path = memcpy(text, module->path, path_size);
		copy->build_id = memcpy(text + path_size, build_id, id_size);
	}
	return copy;
}
