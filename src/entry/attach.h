/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection gets queryprof: session, functions, PRAGMAs and tables.
 */
#pragma once

#include <stdbool.h>

#include "sqlite/library/host.h"

/* If the host's calls can be hooked, this reads and writes none of the connection's databases: the
 * schema `system` comes with the first statement that names it or, if the host attached this
 * connection itself (`wants_tables`), one of its tables. Otherwise the schema comes now.
 * Idempotent. On failure the connection works as before, without the part that failed, and
 * `*error` has a message (sqlite3_malloc). */
int attach_connection(sqlite3 *db, bool wants_tables, char **error);
