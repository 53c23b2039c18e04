/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that are replaced for all code of the process that calls them: what ends
 * it (exit.h), what gives up its rights (rights.h), what sets and waits for signals
 * (signals.h), what waits (waits.h, calls.h), dlsym() (lookup.h), and those of a later room, its source.
 */
#ifndef QUERYPROF_HOOK_HOOK_H
#define QUERYPROF_HOOK_HOOK_H

#include <stdbool.h>

#include "hook/import.h"

/* There is one source, and its functions are called by one thread at a time. */
struct hook_source {
	/* The prefix of its functions' names: dlsym() finds the replacements of these,
	 * and they show which of several libraries an object is bound to. */
	const char *family;
	int most; /* how many hooks it adds at most, ever */
	/* Writes the hooks that have come since the call before; their number. Those that it
	 * wrote stay where they are. */
	int (*add)(struct import_hook *hooks);
	/* The slots are patched: `in_library` and `elsewhere` of its hooks can be read now. */
	void (*patched)(void);
};

/* Patches the slots of all objects that came since the call before, for the hooks that
 * are known by now; cheap when nothing came. While another thread does it: waits for two
 * seconds at most, or returns at once, and that thread looks again. */
void hook_patch(const struct hook_source *source);
void hook_try_patch(const struct hook_source *source);

/* Writes to slots beside those, if no other thread patches now. False: one was not written. */
struct hook_slot {
	void **at, *value;
};
bool hook_try_set(const struct hook_slot *slots, int count);

#endif
