/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that the host calls instead of SQLite's: a set of wrappers for each SQLite library of
 * the process, because a wrapper must know its library.
 */
#pragma once

#include "hook/import.h"
#include "sqlite/library/host.h"
#include "sqlite/static/patch.h"

#define WRAPPERS_MAX 26

/* Fills the hooks of a library of host_libraries; returns their number. The first is that of
 * sqlite3_step. Call it once for each library. */
int wrappers_hooks(const struct host_library *library, struct import_hook hooks[WRAPPERS_MAX]);

/* The same for a library whose functions, `routines`, are to be patched: their entries, the first
 * being sqlite3_step, and in `members` their positions in the table of routines. Once for each
 * library. */
size_t wrappers_entries(const struct host_library *library, const sqlite3_api_routines *routines,
                        struct patch_entry entries[PATCH_ENTRIES_MAX], size_t members[PATCH_ENTRIES_MAX]);

/* The function to which such functions only pass their arguments on, 0: they do more. */
struct patch_entry wrappers_lock_and_prepare(const struct host_library *library, uintptr_t function);
struct patch_entry wrappers_close_any(const struct host_library *library, uintptr_t function);
