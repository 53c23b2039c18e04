/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace files of an older version.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* Brings the file up to sql/schema/store_schema.sql. Within the caller's transaction; does
 * not set the version. An SQLite result. */
int upgrade_file(sqlite3 *db);

/* The same for a file of that version that can only be read: for this connection, this version's views are
 * put in front of the file's, whichever program made those, and the missing parts in front of a file of an
 * older version. */
int upgrade_view(sqlite3 *db, int64_t version);
