/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace files, opened for reading only.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

struct address_space;

/* Opens a trace file with queryprof's SQL functions, whose addresses are those of the
 * file (sql/trace_file_functions.h). NULL after a complaint. */
sqlite3 *trace_file_open(const char *path);

/* The same with no function but fileName(), and without this version's views, which take most of the time.
 * For statements that read tables, in a file of this version. */
sqlite3 *trace_file_open_tables(const char *path);

/* Adds that function to a connection with which queryprof writes. False after a complaint. */
bool trace_file_use_tables(sqlite3 *db, const char *path);

void trace_file_close(sqlite3 *db);

/* Whether nothing was written to the file since queryprof made it. Never complains. */
bool trace_file_is_untouched(const char *path);

/* Whether `queryprof pull` made it, so it lacks the data that sql/pull/load.sql does not load. */
bool trace_file_is_pulled(sqlite3 *db);

/* Complains that the file cannot be found (errno); for a URL, explains how to make a file of it.
 * COMMAND_FAILED. */
int trace_file_complain(const char *path);

/* The description of a trace file in complaints. */
#define TRACE_FILE_EXPECTED "expected a trace file, which queryprof record writes"

/* Whether a process has the file open in WAL mode, like one that writes samples. */
bool trace_file_is_in_use(const char *path);

/* Whether SQLite treats the file as one without a writer: no locks and no log. */
bool trace_file_is_immutable(sqlite3 *db);

/* The meaning of addresses in an open file, until it is closed. NULL: it was opened without functions. */
const struct address_space *trace_file_space(sqlite3 *db);

/* The URI with which trace_file_open() opens the file. sqlite3_malloc'ed; NULL: no memory. */
char *trace_file_uri(const char *path);

/* The name of its write-ahead log, which is next to the target of a link. Malloc'ed; NULL: no memory. */
char *trace_file_log(const char *path);
