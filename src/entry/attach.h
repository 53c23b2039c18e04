/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection gets queryprof: session, functions, PRAGMAs and tables.
 */
#ifndef QUERYPROF_ENTRY_ATTACH_H
#define QUERYPROF_ENTRY_ATTACH_H

#include <stdbool.h>

#include "sqlite/library/host.h"

/* Reads and writes none of the connection's databases, if the host's calls can be hooked:
 * the schema `system` then comes with the first statement that names it or, where the
 * host attached this connection itself (`wants_tables`), one of its tables. Otherwise that is now. Again is
 * SQLITE_OK. On failure the connection works as before, without what failed, with a
 * message in `*error` (sqlite3_malloc). */
int attach_connection(sqlite3 *db, bool wants_tables, char **error);

#endif
