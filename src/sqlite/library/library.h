/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the SQLite library that a process has mapped, without calling it: the host may still want to
 * configure it, which it can no longer do once SQLite has been initialised.
 *
 * Also compiled into the preload, which contains nothing else of the library.
 */
#pragma once

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

/* The next shared library that defines sqlite3_step and is to be followed by its name; false:
 * there is none yet. The program itself does not count, because its calls of its own copy use no
 * table. Not async-signal-safe; callable while the loader runs constructors. */
bool library_next(struct library_search *search, struct sqlite_library *library);

/* Whether the object defines a function of this name for others. */
bool library_object_defines(const struct dl_phdr_info *info, const char *function);

/* Whether SQLite's calls of its own functions bypass the object's import table: the linker has
 * bound them (-Bsymbolic, -Bsymbolic-functions, protected visibility), or the compiler
 * (-fno-semantic-interposition). */
bool library_is_bound(const struct dl_phdr_info *info);

/* Whether the object is a shared library of SQLite whose relevant calls all pass import tables:
 * its own pass its table, or it contains no code except SQLite's. A module that exports its
 * SQLite, and calls it without the table, is not one (sqlite/static/copies.h). */
bool library_is_called_by_name(const struct dl_phdr_info *info);
