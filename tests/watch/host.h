/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the system's SQLite together with queryprof, either loaded as an extension or
 * recording. Sanitizer builds of this program load the sanitizer's run-time library.
 */
#ifndef QUERYPROF_TESTS_WATCH_HOST_H
#define QUERYPROF_TESTS_WATCH_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

/* `how` is "loaded", "recorded", or "alone" (without queryprof). Every query is sampled and logged. Call
 * it once, before anything else. QUERYPROF_TEST_LIBRARY names a library to load instead of the built one. */
void host_begin(const char *how);

/* Opens a file with this name in the program's own directory. "" opens a database in memory. */
sqlite3 *host_open(const char *name);

void host_exec(sqlite3 *db, const char *sql);
sqlite3_stmt *host_prepare(sqlite3 *db, const char *sql);

/* Returns the number that the SQL selects. */
int64_t host_int(sqlite3 *db, const char *sql);

/* Returns a metric, or 0 for "alone". */
int64_t host_metric(const char *name);

/* Returns the result of main(). It is also a failure if queryprof has not seen any query. */
int host_end(int failed);

const char *host_library(void);
const char *host_directory(void);

#endif
