/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a private copy, for recorded statements. A stranger may have written them and the schema,
 * so they reach nothing else: no other file, no extension, no setting.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

/* A column that a statement reads or sets. column "": the statement inserts, deletes or counts rows of the
 * table. */
struct touch {
	char *table, *column;
	bool is_write;
};
typedef VECTOR(struct touch) touches;

void touches_free(touches *all);

struct connection {
	sqlite3 *db;
	bool is_recorded; /* a recorded statement is running, which may not change the schema */
	int64_t end_ns;   /* a statement that runs at that time is interrupted */
	char error[160];  /* why a statement failed */
	touches *touched; /* receives what the next statement touches; NULL: not wanted */
};

/* CLOCK_MONOTONIC. */
int64_t connection_clock_ns(void);

/* False after a complaint that begins with `command`. given: the user's name of the database. */
bool connection_open(struct connection *connection, const char *command, const char *given, const char *path);
void connection_close(struct connection *connection);

/* Runs this command's own SQL. An SQLite result. */
int connection_run(struct connection *connection, const char *sql);

/* The first column of the first row of this command's own SQL; `otherwise` if there is no row. `sql` NULL:
 * no memory for it. */
sqlite3_value *connection_value(struct connection *connection, const char *sql);
int64_t connection_number(struct connection *connection, const char *sql, int64_t otherwise);

/* Whether the text begins like a statement that only reads or changes rows. */
bool connection_can_run(const char *text);

/* A recorded statement. NULL: connection->error has the reason. */
sqlite3_stmt *connection_prepare(struct connection *connection, const char *sql);

/* The plan, one line per node. sqlite3_malloc'ed; NULL: it cannot be prepared. */
char *connection_plan(struct connection *connection, const char *sql);

/* Runs a prepared statement to its end, and undoes its changes. *ns: the CPU time of this thread in it.
 * SQLITE_DONE; SQLITE_INTERRUPT: it took longer than `most_ns`. Another result is an error, with its reason
 * in connection->error. *written, if not NULL: the bytes of the pages that it changed, -1: not known. */
int connection_time(struct connection *connection, sqlite3_stmt *statement, int64_t most_ns, double *ns,
                    int64_t *written);
