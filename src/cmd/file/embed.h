/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines for a trace file.
 */
#pragma once

#include <sqlite3.h>

/* Puts names and lines into the file. patience: how many seconds others may keep it locked. A command_result,
 * after a complaint. */
int embed_file(const char *path, int patience);

/* The same on a connection of database_open(), which has the file `path` open. */
int embed_into(sqlite3 *db, const char *path, int patience);
