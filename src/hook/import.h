/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces a function for all code of the process that calls it through the
 * dynamic linker, by writing to the slots (GOT entries, pointers in data) that the
 * linker filled or will fill.
 *
 * Not in a signal handler, not inside loader_each().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct import_hook {
	const char *symbol;
	void *real; /* slots that resolve to another function stay as they are */
	void *replacement;
	const void *only_in; /* only slots of the object that holds this address; NULL: all */
	/* Slots in here are left alone. */
	const void *keep_start, *keep_end;
	bool spares_family; /* see import_end_sparing() */
	/* Found by the newest scan: slots in the object that holds the real function (so
	 * its own calls can be seen), and elsewhere. */
	int in_library, elsewhere;
};

/* With loader_acquire(). The hook of the process's function. `real` is a pointer to such a
 * function, which gets its address; NULL: the replacement does not call it. */
struct import_hook import_hook_of(const char *symbol, void *real, void *replacement);

struct import_table {
	struct import_hook *hooks;
	int count;
	/* The prefix of one library's functions' names: its other functions show
	 * which of several such libraries an object is bound to. */
	const char *family;
};

/* Scans every object mapped now and patches the slots that are not patched yet. Any number of
 * times; calls must not overlap. Objects may be loaded and unloaded meanwhile, and hooks added at
 * the end. Several hooks may have one symbol, of several libraries. False: another thread is
 * inside dlopen() for longer than `loader_ns`, and nothing was done. */
bool import_patch(const struct import_table *table, uint64_t loader_ns);

/* Slots that have a replacement get the real function, in every object mapped now. Not inside import_patch().
 */
void import_restore(const struct import_table *table);

/* Hooks with this flag ignore the libraries with the family's functions until this call. It must
 * not overlap with import_patch(). */
void import_end_sparing(void);

/* Writes to one slot that has `was`, in a loaded object, which may be read-only there. The loader keeps the
 * object meanwhile, so the slot may be one of an object that was unloaded. Returns whether the slot has the
 * value, which it may have had before. */
bool import_set(void **slot, const void *was, void *value);

/* Whether objects came or went since the newest import_patch(), or it could not yet find out
 * which function every slot will reach. */
bool import_stale(void);
