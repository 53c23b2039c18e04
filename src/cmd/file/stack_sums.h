/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The views top_functions and top_stacks of a file, on sums that are not made by SQL: its GROUP BY sorts
 * all samples, and all frames of all stacks.
 */
#pragma once

#include <sqlite3.h>

/* Puts views with these names, and with the same rows, into the schema temp. An SQLite result. */
int stack_sums_add(sqlite3 *db);
