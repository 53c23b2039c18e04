/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules by address: the common look-up for the modules of this process, of a snapshot of it, and of
 * a trace file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An ELF object in an address space: that of a process, or that of a trace file, in which every
 * module has one place for all processes. */
struct module {
	uint64_t bias;       /* address - ELF virtual address */
	uint64_t start, end; /* the image in memory, all segments */
	uint64_t file_size;  /* of the file at `path`, 0: unknown (vdso, deleted) */
	int64_t mtime_ns;
	const char *path;     /* absolute; "[vdso]" for the vdso */
	const char *build_id; /* lower-case hex, "" when it has none */
	/* In this process: the first generation that contains it, and the first one without it,
	 * UINT32_MAX while it is mapped. In a trace file: 0 and UINT32_MAX. */
	uint32_t born, died;
};

/* Starts as { 0 }. Does not own the modules, none of which overlaps another. */
struct module_map {
	const struct module **items; /* by start; the three are those of VECTOR() */
	size_t count, room;
};

/* The module that has the address; NULL: none has. */
const struct module *module_map_find(const struct module_map *map, uint64_t address);

/* False: no memory, and the map is as it was. */
bool module_map_add(struct module_map *map, const struct module *module);

void module_map_remove(struct module_map *map, size_t index);

void module_map_free(struct module_map *map);

#define MODULE_BUILD_ID_MAX 128 /* digits */

/* A copy with its own path and build id, to be freed with free(). NULL: out of memory. An invalid
 * build id (an odd number of digits, too many, or not lower-case hex, because a file may contain
 * anything) becomes "". */
struct module *module_copy(const struct module *module);
