/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's own address space: the bases of a process's modules in it.
 */
#pragma once

#include <stdint.h>

#include "base/hash_table.h"
#include "store/write/prepared.h"

struct writer;

struct module_writer {
	struct hash_table known; /* by the module and its start: bases */
	struct {
		struct prepared find, add, range_end;
	} sql;
};

extern const struct module_writer module_writer_new;

/* The address of the writer's process in the file's address space; 0 on success. */
int space_map_address(struct writer *writer, uint64_t address, uint32_t generation, uint64_t *placed);
