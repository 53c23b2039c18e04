/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/calls/namespaces.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/loader.h"
#include "base/newer_glibc.h"
#include "sqlite/library/library.h"
#include "sqlite/static/find.h"

#if defined(__GLIBC__)

#define SAID_MAX 16

struct visit {
	void (*found)(const char *path);
	const struct r_debug_extended *spaces;
};

/* By a hash of their paths. */
static bool is_said(const char *path)
{
	static uint32_t said[SAID_MAX];
	static size_t count;
	uint32_t hash = 5381;

	while (*path)
		hash = hash * 33 + (unsigned char)*path++;
	for (size_t i = 0; i < count; i++)
		if (said[i] == hash)
			return true;
	if (count == SAID_MAX)
		return true;
	said[count++] = hash;
	return false;
}

/* The loader's list has no program headers, but they are in the file's first page, which is mapped. */
static bool describe(const struct link_map *map, struct dl_phdr_info *info)
{
	struct dl_find_object object;
	const ElfW(Ehdr) *header;

	if (!*map->l_name || !_dl_find_object || _dl_find_object(map->l_ld, &object))
		return false;
	header = object.dlfo_map_start;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > 4096)
		return false;
	*info = (struct dl_phdr_info){
		.dlpi_addr = map->l_addr,
		.dlpi_name = map->l_name,
		.dlpi_phdr = (const void *)((const char *)header + header->e_phoff),
		.dlpi_phnum = header->e_phnum,
	};
	return true;
}

static bool has_sqlite(const struct dl_phdr_info *info)
{
	struct static_table tables[STATIC_TABLES_MAX];
	struct static_object object;
	size_t count;

	return library_object_defines(info, "sqlite3_step") ||
	       static_find(info, &object, tables, &count) != STATIC_NOTHING;
}

/* In the callback, as the loader's lock is held there. */
static int see_first(struct dl_phdr_info *first, size_t size, void *context)
{
	const struct visit *visit = context;
	struct dl_phdr_info info;

	(void)first, (void)size;
	for (const struct r_debug_extended *space = visit->spaces; space; space = space->r_next)
		for (const struct link_map *map = space->base.r_map; map; map = map->l_next)
			if (describe(map, &info) && has_sqlite(&info) && !is_said(map->l_name))
				visit->found(map->l_name);
	return 1;
}

void namespaces_check(void (*found)(const char *path))
{
	/* The loader's list of namespaces, as debuggers read it. Not by a reference, which a loader of
	 * another C library would have to resolve; found at the start, when nothing waits for the loader. */
	static const struct r_debug_extended *spaces;
	struct visit visit = { .found = found };

	if (!spaces)
		spaces = dlsym(RTLD_DEFAULT, "_r_debug");

	/* The first namespace has a next one only if there is a second. */
	if (spaces && spaces->base.r_version > 1 && (visit.spaces = spaces->r_next))
		loader_each(see_first, &visit);
}

#else /* musl has one namespace */

void namespaces_check(void (*found)(const char *path))
{
	(void)found;
}

#endif
