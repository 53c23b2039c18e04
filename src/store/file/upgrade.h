/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace files of an older version.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* Adds everything that the file lacks of sql/schema/store_schema.sql, within the caller's transaction. Does
 * not set the version. An SQLite result. */
int upgrade_file(sqlite3 *db);

/* The same for a file of that version that can only be read, for this connection. This version's views hide
 * the file's, because any program may have made those. The parts that an older file lacks become temporary
 * ones. */
int upgrade_view(sqlite3 *db, int64_t version);
