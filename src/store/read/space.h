/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's address space for readers: which module contains an address of a stack.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct module;

/* Set in an address of a stack that is in no module; the other bits are the address in its process. */
#define STORE_NOWHERE (1ull << 62)

/* The module that contains `address`, as in trace_log.trace of this store's file, or an address of this
 * process that no sample has named yet. NULL: neither the store nor this process knows a module with that
 * address. Valid until store_shutdown(). */
const struct module *store_locate(uint64_t address);

/* Converts addresses of this process, in the code map `generation`, to those of stacks in this store's file.
 * If the file does not have the module yet, its addresses are unchanged. If another module has them, they are
 * marked with STORE_NOWHERE. */
void store_location(uint64_t *addresses, size_t count, uint32_t generation);

/* Forgets the modules, and frees the strings that callers have. */
void space_free(void);
