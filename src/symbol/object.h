/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ELF object an address lies in.
 */
#pragma once

#include <stdint.h>

#include "modules/module_map.h"

/* A file is used only if it is the one that was mapped: its build id says so, or without
 * one its size and time. */
struct symbol_object {
	const char *path;
	const char *build_id; /* lower-case hex; "" when it has none */
	uint64_t file_size;   /* 0: unknown; then an object without build id has no names */
	int64_t mtime_ns;
};

/* The object that is mapped as `module`, whose strings it uses. */
static inline struct symbol_object symbol_object_of(const struct module *module)
{
	return (struct symbol_object){
		.path = module->path,
		.build_id = module->build_id,
		.file_size = module->file_size,
		.mtime_ns = module->mtime_ns,
	};
}
