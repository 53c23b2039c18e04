/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's address space as readers see it: which module an address of a trace lies in.
 */
#ifndef QUERYPROF_STORE_READ_SPACE_H
#define QUERYPROF_STORE_READ_SPACE_H

#include <stddef.h>
#include <stdint.h>

struct module;

/* Set in an address of a trace that lies in no module; the other bits are what it was in its
 * process. */
#define STORE_NOWHERE (1ull << 62)

/* The module that `address`, as in trace_log.trace of the own store's file, lies in; also
 * takes an address of this process that no sample has named yet. NULL: in no module that the
 * store knows or the process has mapped. It stays valid until store_shutdown(). */
const struct module *store_locate(uint64_t address);

/* Makes addresses of this process, read against the code map `generation`, what a trace in
 * the own store's file has for them. A module that the file does not know yet lies at its
 * real place, or nowhere when that is another's. */
void store_location(uint64_t *addresses, size_t count, uint32_t generation);

/* Forgets the modules; strings handed out are freed, too. */
void space_free(void);

#endif
