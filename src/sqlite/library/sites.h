/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes the program's calls of SQLite from SQLite's own. Where SQLite is linked into a
 * program, its calls of its own functions come from the same object as the program's, mixed by
 * link-time optimisation. But SQLite calls them inside of calls only. So a place that has called
 * from outside of any is the host's for ever; SQLite's own places are never seen there.
 *
 * The table is one of its own: each call looks in it, any thread adds without a lock, and what finds no
 * room is left out.
 */
#ifndef QUERYPROF_SQLITE_LIBRARY_SITES_H
#define QUERYPROF_SQLITE_LIBRARY_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlite/library/host.h"

#define SITES 4096 /* a power of two */

extern uintptr_t sites[SITES] __attribute__((visibility("hidden")));

static inline size_t site_slot(uintptr_t caller)
{
	return (size_t)(caller * 0x9e3779b97f4a7c15u >> 52);
}

void site_add(uintptr_t caller);

/* The place that calls, outside of any other call. */
static inline void site_see(const void *caller)
{
	/* Relaxed: a word by itself. */
	if (__atomic_load_n(&sites[site_slot((uintptr_t)caller)], __ATOMIC_RELAXED) != (uintptr_t)caller)
		site_add((uintptr_t)caller);
}

/* Whether it was seen. */
bool site_is_known(const void *caller);

/* Whether a place that calls this SQLite is the host's, as far as is known. */
static inline bool site_is_hosts(const struct host_library *library, const void *caller)
{
	return !host_is_within(library, caller) || (host_is_patched(library) && site_is_known(caller));
}

#endif
