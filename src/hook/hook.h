/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that are replaced for all code of the process that calls them: those that end it
 * (exit.h), give up its rights (rights.h), set and wait for signals (signals.h) and wait (waits.h,
 * calls.h), dlsym() (lookup.h), and those of a later room, its source.
 */
#pragma once

#include <stdbool.h>

#include "hook/import.h"

/* There is one source, and its functions are called by one thread at a time. */
struct hook_source {
	/* The prefix of its functions' names: dlsym() finds the replacements of these,
	 * and they show which of several libraries an object is bound to. */
	const char *family;
	int most; /* how many hooks it adds at most, ever */
	/* Writes the hooks that were added since the previous call; returns their number. Hooks
	 * that it wrote do not move. */
	int (*add)(struct import_hook *hooks);
	/* The slots are patched: `in_library` and `elsewhere` of its hooks can be read now. */
	void (*patched)(void);
};

/* Patches the slots of all objects that were loaded since the previous call, for the current
 * hooks; cheap if there are none. If another thread does it: waits for at most two seconds, or
 * returns immediately, and that thread scans again. */
void hook_patch(const struct hook_source *source);
void hook_try_patch(const struct hook_source *source);

/* The slots of all objects get their functions back; hook_patch() patches them again. */
void hook_restore(void);

/* Writes to other slots as import_set() does, if no other thread patches now. False: one does not have its
 * value, and those that follow it are as they were. */
struct hook_slot {
	void **at, *was, *value;
};
bool hook_try_set(const struct hook_slot *slots, int count);
