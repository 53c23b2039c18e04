/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values for parameters whose recorded values are not known: drawn from the columns that the statement
 * compares them with, by a fixed seed. All values of a table in one set are of one row, as a program's mostly
 * are.
 */
#pragma once

#include "cmd/advise/compared.h"

/* `sets` times as many values as the statement has parameters. NULL: *unknown (malloc'ed) says why. */
sqlite3_value **drawn_values(struct connection *connection, sqlite3_stmt *statement,
                             struct compared *compared, int sets, char **unknown);
void drawn_free(sqlite3_value **values, size_t count);
