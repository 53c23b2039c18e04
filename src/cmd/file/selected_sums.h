/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table temp.selected_sums (grouped.h), which replaces the view of that name
 * (sql/read/selected.sql documents the columns): the sums of the samples. The keys are the columns up to
 * `checkpoint`.
 */
#pragma once

#include <sqlite3.h>

/* Replaces the view. An SQLite result. */
int selected_sums_replace(sqlite3 *db);
