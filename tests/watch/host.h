/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the system's SQLite with queryprof, loaded as an extension or recording. Also built
 * with sanitizers, whose run-time library the program then loads.
 */
#ifndef QUERYPROF_TESTS_WATCH_HOST_H
#define QUERYPROF_TESTS_WATCH_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

/* "loaded", "recorded", or "alone": nothing of queryprof's. Every query is sampled and logged. To be
 * called once, first. QUERYPROF_TEST_LIBRARY names another library than the one built. */
void host_begin(const char *how);

/* A connection to a file of that name in a directory of the program's own; "" is in memory. */
sqlite3 *host_open(const char *name);

void host_exec(sqlite3 *db, const char *sql);
sqlite3_stmt *host_prepare(sqlite3 *db, const char *sql);

/* A number that SQL gives. */
int64_t host_int(sqlite3 *db, const char *sql);

/* A metric; alone: 0. */
int64_t host_metric(const char *name);

/* The result of main(): a failure, too, when queryprof has seen no query at all. */
int host_end(int failed);

const char *host_library(void);
const char *host_directory(void);

#endif
