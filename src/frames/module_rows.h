/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of a trace file, read from a row of its table. Inline, because the file's connection
 * may belong to either of two SQLites, the host's or the store's.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>

#include "modules/module_map.h"

#define MODULE_ROWS "SELECT base, extent, elf_start, path, build_id, file_size, mtime_ns FROM modules"

/* Adds a copy of the module that a row of MODULE_ROWS describes. False: no memory. */
static inline bool module_rows_add(struct module_map *modules, sqlite3_stmt *row)
{
	const uint64_t base = (uint64_t)sqlite3_column_int64(row, 0);
	const char *path = (const char *)sqlite3_column_text(row, 3);
	const char *build_id = (const char *)sqlite3_column_text(row, 4);
	const struct module seen = {
		.bias = base - (uint64_t)sqlite3_column_int64(row, 2),
		.start = base,
		.end = base + (uint64_t)sqlite3_column_int64(row, 1),
		.file_size = (uint64_t)sqlite3_column_int64(row, 5),
		.mtime_ns = sqlite3_column_int64(row, 6),
		.path = path ? path : "",
		.build_id = build_id ? build_id : "",
		.died = UINT32_MAX,
	};
	struct module *module = module_copy(&seen);

	if (module && module_map_add(modules, module))
		return true;
	free(module);
	return false;
}

/* Frees the copies and the map. */
static inline void module_rows_free(struct module_map *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		free((struct module *)modules->items[i]);
	module_map_free(modules);
}
