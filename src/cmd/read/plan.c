/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof plan: the plans of the selected statements, with the time of each node.
 */
#include "cmd/line/command.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/file/selection.h"
#include "cmd/read/plan_tree.h"
#include "cmd/ui/terminal.h"
#include "sql_plan_opcodes.h"

#define PLANS_MAX 3 /* without --limit */

static const char *type_name, *limit, *opcodes, *dot;

static const struct command_option options[] = {
	SHOWN_TYPE_OPTION(&type_name),
	LIMIT_OPTION(&limit, "plans at most (default 3)"),
	COMMAND_FLAG("opcodes", &opcodes, "also the newest program, with the time of each opcode"),
	COMMAND_FLAG("dot", &dot,
	             "as a graph for Graphviz: dot -Tsvg; boxes are redder the more time they take"),
	{ 0 },
};

/* Prints those without a known plan, and the reason. Returns their number, with those beyond the limit. */
static int print_missing(sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	const int most = limit ? atoi(limit) : PLANS_MAX;
	int found = 0;

	if (sqlite3_prepare_v2(db, "SELECT reason, query FROM temp.selected_without_plan ORDER BY ns DESC",
	                       -1, &row, NULL) == SQLITE_OK)
		while (sqlite3_step(row) == SQLITE_ROW)
			if (found++ < most) {
				const char *query = (const char *)sqlite3_column_text(row, 1);

				query += strspn(query, " \t\r\n");
				printf("%s", found == 1 ? "\n" : "");
				int used = printf("no plan: ");
				used += terminal_print((const char *)sqlite3_column_text(row, 0),
				                       (size_t)sqlite3_column_bytes(row, 0), 0, INT_MAX);
				used += printf(": ");
				terminal_print_cut(query, strlen(query), terminal_room(used), false);
				putchar('\n');
			}
	if (found > most)
		printf("no plan: %d more statement%s (--limit)\n", found - most,
		       found - most == 1 ? "" : "s");
	sqlite3_finalize(row);
	return found;
}

static int print(sqlite3 *db, const char *path, const struct shown_type *type)
{
	const struct sql_parameter parameters[] = { { ":trace_type", type->name },
		                                    { ":unit", type->unit },
		                                    { NULL, NULL } };
	const struct output output = { .doing = "reading opcodes",
		                       .table.unit = type->unit,
		                       .table.hides_empty = true };
	size_t printed;

	if (!plan_tree_statements(db)) {
		if (!dot)
			print_missing(db);
		return complain("%s: these runs have no known plan", path);
	}
	if (opcodes) /* the same pass over the samples makes its sums */
		run_sql_prepare(db, sql_plan_opcodes);
	int result =
		plan_tree_print(db, type, &(struct plan_print){ .limit = limit, .is_dot = dot }, &printed);
	if (!result && !printed) {
		char none[SHOWN_TYPE_NONE];

		shown_type_none(type, none);
		return complain("%s: %s of these runs", path, none);
	}
	if (!result && !dot) {
		plan_tree_print_others(db, selection.like);
		print_missing(db);
	}
	if (result || !opcodes || dot)
		return result;
	printf("\n");
	return run_sql(db, sql_plan_opcodes, parameters, &output);
}

static int read_file(sqlite3 *db, char **argv)
{
	struct shown_type type = shown_type_of(type_name);

	return shown_type_read(&type, db) ? print(db, argv[0], &type) : shown_type_refuse(&type, "plan");
}

const struct command command_plan = {
	.name = "plan",
	.arguments = "[FILE [STATEMENT]] [OPTION]...",
	.summary = "Shows the plans of queries, with the time of each node",
	.details = "The nodes are those of EXPLAIN QUERY PLAN. A nested loop appears below its enclosing "
		   "loop. Work that SQLite does not name there has nodes of its own: modified tables and "
		   "indexes, and triggers with their own nodes below.\n\n"
		   "`each` in a heading is the mean time of a run inside SQLite, with preparing. "
		   "`self` is the share of the time in the node itself; `total` includes the nodes below it. "
		   "The time is that of `total`, with one standard error. `(statement)` is work of no node, "
		   "`(preparing)` the work before the first step, and `(closing)` resetting and finalizing. "
		   "`(run queue)` is the time in which the thread was ready and no processor was free. "
		   "`(not known)` is other work outside SQLite's interpreter, or between two of its opcodes. "
		   "A loop over a virtual table of the program or of an extension has the number of its "
		   "starts and of the rows that it visited; so has any loop if SQLite counts them "
		   "(3.42 and later, with SQLITE_ENABLE_STMT_SCANSTATUS), and then also the rows that its "
		   "planner expected of each "
		   "start. BAD ESTIMATE marks 10 times as many rows, or 10 times fewer. A note marks a scan "
		   "of a table of the file, or "
		   "an index made for one run, that takes 30 % of the time, and names the columns that the "
		   "statement compares.\n\n"
		   "A statement without a plan has a line with the reason.\n\n"
		   "STATEMENT is a part of the statement's text, as with --like.",
	.examples = "  queryprof plan app.trace 'FROM orders'\n"
		    "  queryprof plan app.trace --query 0193a5b2-77c1 --opcodes\n"
		    "  queryprof plan app.trace --dot | dot -Tsvg >plan.svg\n",
	.options = options,
	.shared = selection_options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 2,
	.read = read_file,
};
