/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running SQL and printing its rows.
 */
#pragma once

#include <sqlite3.h>

#include "cmd/ui/output.h"

/* A value for a parameter, as text; NULL leaves the parameter NULL. */
struct sql_parameter {
	const char *name; /* ":name"; NULL ends the list */
	const char *value;
};

void run_sql_bind(sqlite3_stmt *statement, const struct sql_parameter *parameters);

/* Runs all statements of `sql` and prints their rows. The first error ends it: COMMAND_FAILED after a
 * complaint. */
int run_sql(sqlite3 *db, const char *sql, const struct sql_parameter *parameters,
            const struct output *output);

/* Prepares the statements, up to the first that cannot be prepared yet, and runs none, so that virtual tables
 * know their queries beforehand (made_table.h). */
void run_sql_prepare(sqlite3 *db, const char *sql);

/* The text of a column, "" if it is NULL. Valid until the next step. */
const char *run_sql_text(sqlite3_stmt *row, int column);
