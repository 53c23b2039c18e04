/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the trace file by the library's private copy of SQLite. All are opened with the same care:
 * neither the host nor another process can damage the file while the store uses it.
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
	bool is_made; /* the file was made by this call, and has no rows */
};

#define DATABASE_CLOSED ((struct database){ .guard = { .fd = -1 } })

/* How long a connection waits for another process's lock, unless it has a busy handler. */
#define DATABASE_BUSY_MS 1000

struct database_limits {
	int64_t wal_bytes;                  /* the write-ahead log is kept near this */
	bool temporary;                     /* the file need not survive the machine */
	struct contention_limit contention; /* for opening, while another process has the file locked */
};

/* Opens the file for writing. Makes it if it does not exist or is empty; upgrades it if its version is older.
 * QP_OK, or QP_STORE, QP_TOO_NEW or DATABASE_LOCKED with a sentence in `*error` (free() it). A file that is
 * not a trace file remains unchanged. */
int database_open(struct database *database, const char *path, const struct database_limits *limits,
                  char **error);

/* Opens the file and closes it immediately, without reading its tables. Makes it if it does not exist or is
 * empty (`*is_made`: it has no rows). Its log is checkpointed if no other process has it open. Errors as for
 * database_open(). */
int database_touch(const char *path, const struct database_limits *limits, bool *is_made, char **error);

/* The name of this process's database in memory (malloc'ed), for the functions that take a path. All
 * connections of the process with that name share the database, which exists until the last one is closed. */
char *database_memory_name(void);
bool database_is_in_memory(const char *path);

void database_set_limits(struct database *database, const struct database_limits *limits);

/* `last` checkpoints the log if no other process has the file open. Otherwise closing takes microseconds. */
void database_close(struct database *database, bool last);

/* A connection that only reads. Path NULL: an empty database with the schema. */
int database_open_reader(const char *path, sqlite3 **db, char **error);

/* The file may come from anywhere: its views do not run, and its expressions cannot make values without
 * bounds. upgrade_view() puts this version's views in front of the file's. */
void database_distrust(sqlite3 *db);
#define DATABASE_VALUE_MAX (256 << 20) /* bytes; one array of a large export is near 100 MB */

/* Whether all tables of the file store their rows. A table that computes rows could make hours of work out of
 * a small file: by generated columns, by defaults, by indexes of expressions, or as a virtual table. Then the
 * result is QP_STORE. (CHECK constraints are ignored.) DATABASE_LOCKED as for database_open(). */
int database_check_tables(sqlite3 *db, const char *path, char **error);

/* The size in bytes of the file, which `database` has open by that name, and of its log. */
int64_t database_bytes(const struct database *database, const char *path);

/* A sentence (malloc'ed) for an error of `db`: "path: what". */
char *database_error(sqlite3 *db, const char *path);

/* The one number that `sql` selects; `otherwise` if it selects no row. */
int64_t database_number(sqlite3 *db, const char *sql, int64_t otherwise);
