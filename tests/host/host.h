/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the host tests: a program that uses the system's SQLite in the usual way, with queryprof loaded
 * as an extension.
 */
#ifndef QUERYPROF_TESTS_HOST_H
#define QUERYPROF_TESTS_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

/* Opens `path` and loads the library under test. Fails the test on any error. */
sqlite3 *host_open(const char *path);
void host_close(sqlite3 *db);

/* Loads the library under test into an open connection. */
void host_load(sqlite3 *db);

/* Runs SQL. If it fails, the test fails with SQLite's message. */
void host_exec(sqlite3 *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Turns sampling off, so that the test's own queries do not appear in the results. */
void host_quiet(sqlite3 *db);

/* Returns the first column of the first row as a number. The test fails if there is no row. */
int64_t host_int(sqlite3 *db, const char *format, ...) __attribute__((format(printf, 2, 3)));
double host_double(sqlite3 *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the column as malloc'ed text, or NULL for NULL or no row. */
char *host_text(sqlite3 *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns a new empty directory, which is removed with its content when the program ends. */
const char *host_directory(void);

/* Clocks in ns. */
uint64_t host_now(void);        /* CLOCK_MONOTONIC */
uint64_t host_thread_cpu(void); /* CLOCK_THREAD_CPUTIME_ID */

/* Returns SQL of a query that only computes, for about `millions` million loop turns. */
char *host_burn_sql(double millions, const char *mark);

/* Runs such queries until this thread has used `ns` of CPU time since the call. Returns the CPU time used
 * inside them. */
uint64_t host_burn(sqlite3 *db, uint64_t ns, const char *mark);

/* sum(weight * period_ns) of the samples that `where` (SQL) selects. */
int64_t host_sampled_ns(sqlite3 *db, const char *where);

int64_t host_metric(sqlite3 *db, const char *name);

#endif
