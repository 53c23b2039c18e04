/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the stubs through which an object calls other objects (x86-64).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbol/table_builder.h"

/* Adds the stubs of the procedure linkage table, as "name@plt", for an image whose
 * functions have been collected. False: no memory. */
bool plt_collect(const struct elf_image *image, struct symbol_table_builder *builder);

/* The slot that the stub at `address` jumps through, of which `code` are the first bytes; 0
 * when it is no such stub. */
uint64_t plt_decode(const unsigned char *code, size_t size, uint64_t address);

/* Whether the dynamic linker puts the address of the function `name` there. */
bool plt_slot_is(const struct elf_image *image, uint64_t address, const char *name);
