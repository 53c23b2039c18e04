/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of the selected runs, each as a tree with the time of its nodes.
 */
#pragma once

#include <stdint.h>

#include "base/vector.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/shown_type.h"

/* What SQLite counted for a loop of the plan, and the rows that its planner expected of each start of the
 * loop
 * (-1: not known). */
struct plan_count {
	int64_t node, loops, rows;
	double estimate;
	char detail[120]; /* the node's words, which may be cut */
};
typedef VECTOR(struct plan_count) plan_counts;

/* How many times as many rows as expected, at least one of each. Negative: as many times fewer. 0: not known.
 */
double plan_count_factor(int64_t loops, int64_t rows, double estimate);
#define PLAN_FACTOR_MARKED 10

/* Whether fewer rows than expected are no error of the planner: a loop may end before its last row. is_cut:
 * the program has a limit of rows. */
bool plan_may_end_early(const char *detail, bool is_cut);

/* The number of statements with a plan, regardless of literals. */
int plan_tree_statements(sqlite3 *db);

struct plan_print {
	const char *limit;         /* plans at most; NULL: three */
	const char *title;         /* before the first one; may be NULL */
	const plan_counts *counts; /* of a run of the only plan, instead of the file's; may be NULL */
};

/* Prints the plans, by descending time. Prints nothing if no plan or no such samples are known. *printed:
 * their number; may be NULL. A command_result. */
int plan_tree_print(sqlite3 *db, const struct shown_type *type, const struct plan_print *how,
                    size_t *printed);

/* If a part of the text selected the runs (`like`, else NULL): prints in a line for each of their statements
 * how many plans of its other texts are not shown. */
void plan_tree_print_others(sqlite3 *db, const char *like);
