/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table temp.selected_sums in place of the view of that name (sql/read/selected.sql, which says
 * what the columns are): made in one pass over the samples, without sorting them. It has a row for each
 * combination of the key columns that the statement reads, and the sums of the samples with it; the keys are
 * the columns up to `wait`. Each statement is a pass.
 */
#ifndef QUERYPROF_CMD_FILE_SELECTED_SUMS_H
#define QUERYPROF_CMD_FILE_SELECTED_SUMS_H

#include <sqlite3.h>

/* Puts it in the view's place. An SQLite result. */
int selected_sums_replace(sqlite3 *db);

#endif
