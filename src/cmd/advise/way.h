/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement that `analyze` runs on a private copy, with the values of its parameters and a PRAGMA.
 */
#pragma once

#include "cmd/advise/connection.h"
#include "cmd/read/plan_counts.h"

struct way {
	const char *sql, *pragma; /* pragma: NAME=VALUE, NULL: none */
	const char *const *values;
	size_t values_count;
	int64_t run_ns;     /* of a run, once it is known */
	plan_counts counts; /* of the same run; empty: not known */
};

/* Whether a PRAGMA may be set: it is NAME=VALUE, and changes neither the file nor another connection. */
bool way_may_set(const char *pragma);

/* The names of the PRAGMAs that a way may set, as messages list them. */
extern const char way_pragmas[];

/* Opens the copy for the way: sets its PRAGMA. False after a complaint. */
bool way_open(const struct way *way, struct connection *connection, const char *given, const char *copy);

/* The statement with its values; NULL: connection->error has the reason. A value is [NAME=]VALUE. */
sqlite3_stmt *way_prepare(const struct way *way, struct connection *connection);
