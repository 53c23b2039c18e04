/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQLite counts for the loops of a statement, what its planner expected of them, and whether ANALYZE
 * would mend an expectation that was wrong.
 */
#pragma once

#include "cmd/advise/way.h"
#include "cmd/read/plan_counts.h"

/* The counts of the statement's runs since it was prepared. Empty if the SQLite that is linked does not
 * count. SQLite numbers the loops of a program that runs differently from those of EXPLAIN QUERY PLAN, whose
 * numbers the nodes have elsewhere. But both are in the same order, so the texts are compared. Clears the
 * statement's values. False: no memory. */
bool estimates_read(struct connection *connection, sqlite3_stmt *statement, plan_counts *counts);

/* Prints for each loop with a wrong estimate what it would be after ANALYZE, which runs on the copy, and
 * whether the plan would change. Nothing if no estimate is wrong. Takes about `ns` at most; *is_changed: the
 * plan changed. */
void estimates_explain(const struct way *way, struct connection *connection, int64_t ns, bool *is_changed);
