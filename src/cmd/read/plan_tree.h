/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of the selected runs, each as a tree with the time of its nodes.
 */
#pragma once

#include "cmd/file/run_sql.h"
#include "cmd/file/shown_type.h"

/* The number of statements with a plan, regardless of literals. */
int plan_tree_statements(sqlite3 *db);

/* Prints at most `limit` plans (NULL: three), by descending time, and before the first one `title`, unless
 * NULL. Prints nothing if no plan or no such samples are known. *printed: their number; may be NULL. A
 * command_result. */
int plan_tree_print(sqlite3 *db, const struct shown_type *type, const char *limit, const char *title,
                    size_t *printed);

/* If a part of the text selected the runs (`like`, else NULL): prints in a line for each of their statements
 * how many plans of its other texts are not shown. */
void plan_tree_print_others(sqlite3 *db, const char *like);
