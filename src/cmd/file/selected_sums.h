/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table temp.selected_sums (grouped.h) in place of the view of that name (sql/read/selected.sql,
 * which says what the columns are): the sums of the samples. The keys are the columns up to `checkpoint`.
 */
#pragma once

#include <sqlite3.h>

/* Puts it in the view's place. An SQLite result. */
int selected_sums_replace(sqlite3 *db);
