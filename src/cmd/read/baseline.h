/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `queryprof check` does not report again: a file with a line for each, the limit and the statement.
 */
#pragma once

#include <sqlite3.h>

/* Writes what is in temp.violations (sql/read/check.sql) to the file `path`, which must not be `trace`, and
 * says how many. A command_result. */
int baseline_write(sqlite3 *db, const char *path, const char *trace);

/* Takes what is in the file out of temp.violations. A command_result. */
int baseline_apply(sqlite3 *db, const char *path);
