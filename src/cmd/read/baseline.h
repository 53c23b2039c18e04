/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Violations that `queryprof check` does not report again: a file with a limit and a statement in each line.
 */
#pragma once

#include <sqlite3.h>

/* Writes temp.violations (sql/read/check.sql) to the file `path`, which must not be `trace`, and prints their
 * number. A command_result. */
int baseline_write(sqlite3 *db, const char *path, const char *trace);

/* Removes the file's violations from temp.violations. A command_result. */
int baseline_apply(sqlite3 *db, const char *path);
