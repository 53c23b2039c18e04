/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the trace file over the library's private copy of SQLite: opened
 * with the same care everywhere, so that neither the host nor another process can
 * pull the file from under the store.
 */
#pragma once

#include <stdbool.h>
#include <sqlite3.h>
#include <stdint.h>

#include "store/file/contention.h"
#include "store/file/guard.h"

/* The file as the writer holds it. */
struct database {
	sqlite3 *db; /* NULL: not open */
	struct guard guard;
	bool is_made; /* now, with no row in it */
};

#define DATABASE_CLOSED ((struct database){ .guard = { .fd = -1 } })

struct database_limits {
	int64_t wal_bytes;                  /* the write-ahead log is kept near this */
	bool temporary;                     /* the file need not survive the machine */
	struct contention_limit contention; /* while another process has the file that is to be opened */
};

/* Opens the file for writing, and makes it if it does not exist or is empty; a file of an older
 * version is upgraded. QP_OK, or QP_STORE, QP_TOO_NEW or DATABASE_LOCKED with a sentence in
 * `*error` (free() it). A file that is not a trace file remains unchanged. */
int database_open(struct database *database, const char *path, const struct database_limits *limits,
                  char **error);

/* Opens the file and closes it immediately, without reading its tables: it is made if it does not
 * exist or is empty (`*is_made`: so it has no row), and its log is checkpointed if no other
 * process has it open. Errors as for database_open(). */
int database_touch(const char *path, const struct database_limits *limits, bool *is_made, char **error);

/* The name of this process's database in memory (malloc'ed), for the functions that take a
 * path. All connections of the process with that name share it, and it goes with the last. */
char *database_memory_name(void);
bool database_is_in_memory(const char *path);

void database_set_limits(struct database *database, const struct database_limits *limits);

/* `last` folds the log back into the file where no other process has it open; otherwise
 * closing is a matter of microseconds. */
void database_close(struct database *database, bool last);

/* A connection that only reads. Path NULL: an empty database with the schema. */
int database_open_reader(const char *path, sqlite3 **db, char **error);

/* The file may come from anywhere, so its views do not run, and none of its expressions makes a
 * value without bounds. upgrade_view() puts this version's views in front of them. */
void database_distrust(sqlite3 *db);
#define DATABASE_VALUE_MAX (256 << 20) /* bytes; one array of a large export is near 100 MB */

/* Whether all tables of the file hold their rows. One that computes them, by generated columns, as a
 * virtual table, or while they are written, by defaults and by indexes of expressions, could make hours
 * of work of a small file: QP_STORE. (CHECK constraints are ignored.) DATABASE_LOCKED as for
 * database_open(). */
int database_check_tables(sqlite3 *db, const char *path, char **error);

/* Bytes of the file, which `database` holds under that name, and of its log. */
int64_t database_bytes(const struct database *database, const char *path);

/* A sentence (malloc'ed) for an error of `db`: "path: what". */
char *database_error(sqlite3 *db, const char *path);

/* The one number that `sql` selects; `otherwise` when it gives no row. */
int64_t database_number(sqlite3 *db, const char *sql, int64_t otherwise);
