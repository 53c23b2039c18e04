/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual table temp.summed_runs (grouped.h): the rows of the view run_values (sql/read/selected.sql),
 * summed up.
 */
#pragma once

#include <sqlite3.h>

/* Call it while no statement is running. An SQLite result. */
int summed_runs_add(sqlite3 *db);
