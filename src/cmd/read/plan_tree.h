/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of the selected runs, each as a tree with the time of its nodes.
 */
#pragma once

#include "cmd/file/run_sql.h"
#include "cmd/file/shown_type.h"
#include "cmd/read/plan_counts.h"

/* The number of statements with a plan, regardless of literals. */
int plan_tree_statements(sqlite3 *db);

struct plan_print {
	const char *limit;         /* plans at most; NULL: three */
	const char *title;         /* before the first one; may be NULL */
	const plan_counts *counts; /* of a run of the only plan, instead of the file's; may be NULL */
	bool is_dot;               /* as a graph in Graphviz's language */
};

/* Prints the plans, by descending time. Prints nothing if no plan or no such samples are known. *printed:
 * their number; may be NULL. A command_result. */
int plan_tree_print(sqlite3 *db, const struct shown_type *type, const struct plan_print *how,
                    size_t *printed);

/* If a part of the text selected the runs (`like`, else NULL): prints in a line for each of their statements
 * how many plans of its other texts are not shown. */
void plan_tree_print_others(sqlite3 *db, const char *like);
