/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as a table that fits the terminal.
 */
#ifndef QUERYPROF_CMD_UI_OUTPUT_TABLE_H
#define QUERYPROF_CMD_UI_OUTPUT_TABLE_H

#include "cmd/ui/output.h"

/* An SQLite result. */
int output_table(sqlite3_stmt *statement, const struct output *output);

#endif
