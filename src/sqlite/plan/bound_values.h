/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that are bound to a statement, in its text.
 *
 * SQLite plans `name LIKE ?` for the pattern that is bound: it prepares the statement again when a pattern is
 * bound. A statement with the pattern in its text has the same plan. All other parameters stay, because
 * SQLite makes other bytecode for numbers than for parameters.
 */
#pragma once

#include "sqlite/library/host.h"

/* With all bound values, for sqlite3_free(). NULL: out of memory, or they are too long. Under the
 * connection's mutex. */
char *bound_values_expand(const sqlite3_api_routines *api, sqlite3 *db, sqlite3_stmt *stmt);

/* With the bound texts that follow LIKE and GLOB, for free(). NULL: there are none. Under the connection's
 * mutex. */
char *bound_values_patterns(const sqlite3_api_routines *api, sqlite3 *db, sqlite3_stmt *stmt,
                            const char *text);
