/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The views top_functions and top_stacks of a file, with sums that are not computed by SQL, whose GROUP BY
 * sorts all samples, and all frames of all stacks.
 */
#pragma once

#include <sqlite3.h>

/* Adds views with these names and the same rows to the schema temp. An SQLite result. */
int stack_sums_add(sqlite3 *db);
