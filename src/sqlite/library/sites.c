/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/library/sites.h"

/* A place that finds no room so near to its own is taken for SQLite's. */
#define PROBES 16

uintptr_t sites[SITES];

static uintptr_t *find(uintptr_t caller, uintptr_t wanted)
{
	for (size_t i = 0; i < PROBES; i++) {
		uintptr_t *slot = &sites[(site_slot(caller) + i) % SITES];
		uintptr_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if (found == caller || found == wanted)
			return slot;
	}
	return NULL;
}

void site_add(uintptr_t caller)
{
	uintptr_t *slot;

	/* Another thread may take the place first. */
	while ((slot = find(caller, 0)) && __atomic_load_n(slot, __ATOMIC_RELAXED) != caller)
		__atomic_compare_exchange_n(slot, &(uintptr_t){ 0 }, caller, false, __ATOMIC_RELAXED,
		                            __ATOMIC_RELAXED);
}

bool site_is_known(const void *caller)
{
	return find((uintptr_t)caller, (uintptr_t)caller) != NULL;
}
