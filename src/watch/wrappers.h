/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host calls instead of SQLite's functions: a set of wrappers for each SQLite
 * library of the process, for a wrapper must know which library it stands before.
 */
#ifndef QUERYPROF_WATCH_WRAPPERS_H
#define QUERYPROF_WATCH_WRAPPERS_H

#include "hook/import.h"
#include "watch/host.h"

#define WRAPPERS_MAX 25

/* Fills the hooks of a library of host_libraries; returns their number. The first is
 * that of sqlite3_step. To be called once for each library. */
int wrappers_hooks(const struct host_library *library, struct import_hook hooks[WRAPPERS_MAX]);

#endif
