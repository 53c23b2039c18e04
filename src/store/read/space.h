/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's address space for readers: which module contains an address of a trace.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct module;

/* Set in an address of a trace that is in no module; the other bits are the address in its process. */
#define STORE_NOWHERE (1ull << 62)

/* The module that contains `address`, as in trace_log.trace of the own store's file; also accepts
 * an address of this process that no sample has named yet. NULL: the store knows no module with
 * the address and the process has not mapped one. Valid until store_shutdown(). */
const struct module *store_locate(uint64_t address);

/* Converts addresses of this process, of the code map `generation`, to those of traces in the own
 * store's file. A module that the file does not know yet has its real address, or none if another
 * module has that. */
void store_location(uint64_t *addresses, size_t count, uint32_t generation);

/* Forgets the modules; strings handed out are freed, too. */
void space_free(void);
