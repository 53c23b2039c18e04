/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a copy of SQLite inside the program or a module as if it were a shared library.
 */
#ifndef QUERYPROF_SQLITE_CALLS_ADOPT_H
#define QUERYPROF_SQLITE_CALLS_ADOPT_H

#include "sqlite/library/host.h"
#include "sqlite/static/copies.h"

/* Takes the copy on and patches it, before it has a connection; `*known`: it was taken on before.
 * NULL, or why not (malloc'ed, "" without memory). One thread at a time. */
char *static_adopt(const struct static_copy *copy, bool *known);

/* Patches a library that an extension has brought, whose calls cannot be seen otherwise. Other
 * threads stand still meanwhile; `unpatched` says why it was not done. */
void static_adopt_late(const struct host_library *library);

#endif
