/*
 * Replaces a function for everybody in the process who calls it through the
 * dynamic linker, by writing to the slots (GOT entries, pointers in data) that the
 * linker filled or will fill.
 *
 * Not in a signal handler, not inside dl_iterate_phdr.
 */
#ifndef QUERYPROF_SQLITE_GOT_H
#define QUERYPROF_SQLITE_GOT_H

#include <stdbool.h>
#include <stddef.h>

struct got_hook {
	const char *symbol;
	void *real;          /* slots that resolve to another function stay as they are */
	void *replacement;
	const void *only_in; /* only slots of the object that holds this address; NULL: all */
};

struct got_options {
	const void *library;               /* an address in the library that defines the functions */
	const void *keep_start, *keep_end; /* slots in here are left alone */
};

/* What the newest scan found, for the slots of hooks[0]. */
struct got_found {
	int in_library; /* in the library itself: its own calls can be seen */
	int elsewhere;
};

/* Scans every object mapped now and patches what is not patched yet. Any number of
 * times; calls must not overlap. Objects can come and go meanwhile. */
struct got_found got_patch(const struct got_hook *hooks, int count, const struct got_options *options);

/* Whether objects came or went since the newest got_patch(). */
bool got_stale(void);

#endif
