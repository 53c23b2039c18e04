/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of the runs that are selected, each as a tree with the time of its nodes.
 */
#pragma once

#include "cmd/file/run_sql.h"
#include "cmd/file/shown_type.h"

/* The statements among those that have a plan, literals aside. */
int plan_tree_statements(sqlite3 *db);

/* Prints them, at most `limit` (NULL: three), the one that took most first; before the first one
 * `title`, if it is not NULL. Nothing where no plan is known, or no such samples. *printed: how many; may be
 * NULL. A command_result. */
int plan_tree_print(sqlite3 *db, const struct shown_type *type, const char *limit, const char *title,
                    size_t *printed);

/* If runs were selected by a part of their text (`like`, else NULL): says in a line for each of their
 * statements how many plans other texts of the statement had, which are not printed. */
void plan_tree_print_others(sqlite3 *db, const char *like);
