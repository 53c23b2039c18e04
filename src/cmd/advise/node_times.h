/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement's plan with the time of its nodes. A process of this command runs the statement on a private
 * copy, and is recorded into a private trace file.
 */
#pragma once

#include "cmd/advise/way.h"

#define NODE_TIMES_ERROR 0.05 /* a sufficient error for each node that takes NODE_TIMES_LEAST */
#define NODE_TIMES_LEAST 0.01 /* of the statement's time */

/* Runs the way until the errors suffice, and for about `ns` at most. run_ns: the time of a run. Returns
 * the open trace file with that statement selected, or NULL after a complaint. *error: the largest error
 * of such a node, as a part of its time. */
sqlite3 *node_times_measure(const struct way *way, const char *copy, const char *trace, int64_t run_ns,
                            int64_t ns, double *error);

/* Prints the plan as a tree, with the counts of a run. A command_result. */
int node_times_print(sqlite3 *trace, const char *title, const plan_counts *counts);

/* Prints the nodes as rows. */
int node_times_print_rows(sqlite3 *trace, const plan_counts *counts, const char *format_name);

/* The work of that process: `queryprof --run-statement` with these words. Returns its exit status. */
int node_times_run(int argc, char **argv);
