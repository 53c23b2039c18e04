/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops and rows of a plan's nodes, and what the planner expected of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

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
