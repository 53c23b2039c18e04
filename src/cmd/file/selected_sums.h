/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table temp.selected_sums in place of the view of that name (sql/read/selected.sql, which says
 * what the columns are): the sums of the samples, without sorting them. Its rows are by the key columns that
 * the statement reads, or by more; the keys are the columns up to `wait`.
 *
 * A statement asks for its columns when it is prepared. The first one that is stepped reads the samples for
 * all that are asked for until then, and the sums are kept. So a command that prepares its statements
 * beforehand (run_sql_prepare()) reads the samples once.
 */
#ifndef QUERYPROF_CMD_FILE_SELECTED_SUMS_H
#define QUERYPROF_CMD_FILE_SELECTED_SUMS_H

#include <sqlite3.h>

/* Puts it in the view's place. An SQLite result. */
int selected_sums_replace(sqlite3 *db);

#endif
