/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes the program's calls of SQLite from SQLite's own. If SQLite is linked into a program,
 * its calls of its own functions come from the same object as the program's, mixed by link-time
 * optimisation. But SQLite calls them only inside calls. So a place that has made a call outside any
 * other belongs to the host permanently; SQLite's own places never do so.
 *
 * The table is special: each call searches it, any thread adds to it without a lock, and a place that
 * finds no space is omitted.
 */
#pragma once

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
	/* Relaxed: an independent word. */
	if (__atomic_load_n(&sites[site_slot((uintptr_t)caller)], __ATOMIC_RELAXED) != (uintptr_t)caller)
		site_add((uintptr_t)caller);
}

/* Whether it was seen. */
bool site_is_known(const void *caller);

/* Whether a place that calls this SQLite belongs to the host, as far as known. */
static inline bool site_is_hosts(const struct host_library *library, const void *caller)
{
	return !host_is_within(library, caller) || (host_is_patched(library) && site_is_known(caller));
}
