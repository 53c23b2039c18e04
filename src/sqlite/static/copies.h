/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies of SQLite that are linked into the objects of this process, the program and its modules,
 * including modules that export their own. Shared libraries of SQLite are excluded
 * (library_is_called_by_name() of sqlite/library/library.h).
 *
 * Also compiled into the preload.
 */
#pragma once

#include <limits.h>

#include "sqlite/static/find.h"

struct static_copy {
	struct static_object object;
	struct static_table table;
	bool is_of_program;
	char path[PATH_MAX];
};

/* How far a search has come; all 0 at the beginning. */
struct copies_search {
	size_t seen;             /* mapped objects */
	unsigned long long gone; /* how many have been unmapped: then it begins again */
	bool has_seen_program;   /* which is never unmapped */
};

/* New copies since the previous call, at most `room`, which is STATIC_TABLES_MAX or more; 0: there
 * are none yet. A copy may be reported again after an object has been unmapped. `no_table` is
 * called for each object whose copy has no table, or whose table was not found. Takes only the
 * lock of the loader's list, so it is callable while the loader loads. */
size_t copies_find(struct copies_search *search, struct static_copy *copies, size_t room,
                   void (*no_table)(const char *path, enum static_found found));

/* The copy with this table of routines. False: there is none. */
bool copies_find_table(const void *routines, struct static_copy *copy);
