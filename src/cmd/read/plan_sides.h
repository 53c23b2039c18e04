/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two plans of each statement side by side, and in words what changed between them.
 */
#pragma once

#include <sqlite3.h>

/* Prints the statements of sql/diff/plan_pairs.sql, or nothing if there are none. A command_result. */
int plan_sides_print(sqlite3 *both, const char *limit);
