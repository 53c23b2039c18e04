/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the SQLite library that a process has mapped, without calling it: a host may
 * still want to configure it, which it no longer can once SQLite has been initialised.
 *
 * Also compiled into the preload, which has nothing else of the library.
 */
#ifndef QUERYPROF_WATCH_LIBRARY_H
#define QUERYPROF_WATCH_LIBRARY_H

#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

struct sqlite_library {
	const void *step; /* its sqlite3_step */
	char path[PATH_MAX];
};

/* How far a search has come; all 0 at the beginning. */
struct library_search {
	size_t seen;             /* mapped objects */
	unsigned long long gone; /* how many have been unmapped: then it begins again */
};

/* The next shared library that defines sqlite3_step; false: there is none, yet. The
 * program itself does not count: its calls of its own copy go by no table. Not
 * async-signal-safe; callable while the loader runs constructors. */
bool library_find(struct library_search *search, struct sqlite_library *library);

/* Whether the object defines a function of this name for others. */
bool library_object_defines(const struct dl_phdr_info *info, const char *function);

#endif
