/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof diff: compares two sides, statements and functions.
 *
 * Addresses are valid in one file only, so each side is read completely, as names and sums, before the other
 * is opened. A database in memory compares them.
 */
#include "cmd/line/command.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/shown_type.h"
#include "cmd/file/trace_file.h"
#include "cmd/file/words.h"
#include "cmd/read/plan_sides.h"
#include "sql_diff_function_sums.h"
#include "sql_diff_functions.h"
#include "sql_diff_means.h"
#include "sql_diff_scaled_stacks.h"
#include "sql_diff_side_functions.h"
#include "sql_diff_side_plans.h"
#include "sql_diff_side_schema_changes.h"
#include "sql_diff_side_statements.h"
#include "sql_diff_side_totals.h"
#include "sql_diff_sides.h"
#include "sql_diff_stacks.h"
#include "sql_diff_statements.h"
#include "sql_diff_totals.h"
#include "sql_plan_changes.h"
#include "store/file/database.h"

static const char *type_name, *limit, *with, *at;
static struct shown_type type;

static const struct command_option options[] = {
	COMMAND_OPTION("with", "ID", OPTION_QUERY, &with,
	               "compare the query of --query (A) with this one (B), of one file or of two"),
	COMMAND_OPTION("at", "TIME", OPTION_TIME, &at,
	               "A: the runs that began before TIME; B: those that began then or later"),
	SHOWN_TYPE_OPTION(&type_name),
	LIMIT_OPTION(&limit, "statements and functions at most (default 15)"),
	{ 0 },
};

struct side {
	const char *name, *path;
	struct selection selection;
};

/* --- reading one side ------------------------------------------------------------ */

struct copy {
	const char *select, *insert;
};

/* Copies the rows of `select` from one database into a table of the other, after the side's name. */
static int copy_rows(sqlite3 *from, sqlite3 *to, const struct copy *copy, const struct side *side)
{
	const struct sql_parameter parameters[] = { { ":trace_type", type.name }, { NULL, NULL } };
	sqlite3_stmt *rows = NULL, *insertion = NULL;
	int code = sqlite3_prepare_v2(from, copy->select, -1, &rows, NULL);

	if (code == SQLITE_OK && sqlite3_prepare_v2(to, copy->insert, -1, &insertion, NULL) == SQLITE_OK) {
		run_sql_bind(rows, parameters);
		while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
			sqlite3_bind_text(insertion, 1, side->name, -1, SQLITE_STATIC);
			for (int i = 0; i < sqlite3_column_count(rows); i++)
				sqlite3_bind_value(insertion, i + 2, sqlite3_column_value(rows, i));
			if (sqlite3_step(insertion) != SQLITE_DONE)
				break;
			sqlite3_reset(insertion);
		}
	}
	bool is_whole = code == SQLITE_DONE;
	if (!is_whole)
		complain("%s: %s", side->path,
		         sqlite3_errmsg(code == SQLITE_ROW || code == SQLITE_OK ? to : from));
	sqlite3_finalize(rows);
	sqlite3_finalize(insertion);
	return is_whole ? COMMAND_FINE : COMMAND_FAILED;
}

static int run_bare(sqlite3 *db, const char *sql)
{
	const struct sql_parameter parameters[] = { { ":trace_type", type.name }, { NULL, NULL } };

	return run_sql(db, sql, parameters,
	               &(struct output){ .table.is_bare = true, .doing = "reading samples" });
}

static int read_side(sqlite3 *both, const struct side *side)
{
	static const struct copy copies[] = {
		{ sql_diff_side_totals, "INSERT INTO side_totals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)" },
		{ sql_diff_side_statements, "INSERT INTO side_statements VALUES (?, ?, ?, ?, ?, ?, ?, ?)" },
		{ sql_diff_side_plans, "INSERT INTO side_plans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" },
		{ sql_diff_side_schema_changes, "INSERT INTO schema_changes VALUES (?, ?, ?, ?)" },
	};
	static const struct copy factors = { "SELECT hash, factor FROM side_factors",
		                             "INSERT INTO temp.side_factors VALUES (?2, ?3)" };
	static const struct copy functions = {
		sql_diff_side_functions, "INSERT INTO side_functions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
	};
	sqlite3 *db = selection_open(side->path, &side->selection);
	int result = db ? COMMAND_FINE : COMMAND_FAILED;

	if (db)
		shown_type_read(&type, db); /* its name first: it binds below */
	if (!result)
		result = run_bare(db, sql_diff_stacks);
	for (size_t i = 0; !result && i < sizeof(copies) / sizeof(copies[0]); i++)
		result = copy_rows(db, both, &copies[i], side);
	if (!result)
		result = copy_rows(both, db, &factors, side);
	if (!result)
		result = run_bare(db, sql_diff_scaled_stacks);
	if (!result)
		result = copy_rows(db, both, &functions, side);
	if (db)
		trace_file_close(db);
	return result;
}

/* --- both ------------------------------------------------------------------------- */

/* False if single runs are selected, or if an older version wrote the file. */
static bool is_counted(sqlite3 *both, const struct side *side)
{
	return database_number(both,
	                       side->name[0] == 'A' ? "SELECT is_counted FROM side_totals WHERE side = 'A'"
	                                            : "SELECT is_counted FROM side_totals WHERE side = 'B'",
	                       0) != 0;
}

static void print_side(sqlite3 *both, const struct side *side)
{
	char *runs = selection_describe(&side->selection, ", ");

	printf("%s  %s%s%s\n", side->name, side->path, runs ? runs : "",
	       side->selection.query || is_counted(both, side) ? "" : ", logged runs only");
	free(runs);
}

static bool is_nothing_left(sqlite3 *both)
{
	return database_number(both, "SELECT sum(runs + samples + unfinished) FROM side_totals", 1) == 0;
}

static bool have_as_many_runs(sqlite3 *both)
{
	return database_number(both, "SELECT count(*) FROM side_factors WHERE factor <> 1", 1) == 0;
}

static int compare(sqlite3 *both)
{
	static const struct {
		const char *title, *sql, *with_calls, *if_empty;
		bool is_sampled;
		bool is_exact; /* by the clock of the type */
	} parts[] = {
		{ NULL, sql_diff_totals, "0", NULL, false, false },
		{ "Statements", sql_diff_statements, "0", "no runs", false, true },
		{ "Functions", sql_diff_functions, "0", "no samples", true, false },
		{ "Functions, with what they called", sql_diff_functions, "1", "no samples", true, false },
	};
	bool is_scaled = !have_as_many_runs(both);
	int result = run_sql(both, sql_diff_function_sums, NULL,
	                     &(struct output){ .table.is_bare = true, .doing = "adding up functions" });

	for (size_t i = 0; !result && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct sql_parameter parameters[] = {
			{ ":limit", limit },
			{ ":with_calls", parts[i].with_calls },
			{ ":unit", type.unit },
			{ NULL, NULL },
		};
		const struct output output = {
			.table.if_empty = parts[i].if_empty,
			.table.cuts_middle = parts[i].is_sampled,
			.table.folds_last = 1,
			.table.unit = parts[i].is_sampled ? type.unit : "ns",
		};
		if (parts[i].is_exact && !type.clock)
			continue;
		putchar('\n');
		if (parts[i].title)
			printf("%s: %s%s, %s\n", parts[i].title, type.title,
			       !parts[i].is_sampled ? " of a run"
			       : is_scaled          ? " of as many runs as A has"
			                            : "",
			       parts[i].is_sampled ? "sampled" : "exact");
		result = run_sql(both, parts[i].sql, parameters, &output);
	}
	return result;
}

/* Prints nothing if there are none. */
static int print_plans(sqlite3 *both)
{
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	const struct output output = { .table.folds_last = 3, .table.hides_empty = true, .table.unit = "ns" };

	if (!database_number(both,
	                     "SELECT count(*) FROM (SELECT 1 FROM side_plans GROUP BY hash"
	                     " HAVING min(plan_hash) < max(plan_hash))",
	                     0))
		return COMMAND_FINE;
	printf("\nPlans that changed: mean time of a run\n");
	return run_sql(both, sql_plan_changes, parameters, &output);
}

/* False after a usage error. */
static bool find_sides(int argc, char **argv, struct side *sides)
{
	if (selection_check_time("diff", "at", at) != COMMAND_FINE)
		return false;
	for (int i = 0; i < 2; i++) {
		sides[i] = (struct side){ i ? "B" : "A", argv[i && argc > 1], selection };
		if (i && with)
			sides[i].selection.query = with;
		if (at && *(i ? &sides[i].selection.since : &sides[i].selection.until)) {
			complain("diff: --at ends one side and begins the other, so it excludes --since and "
			         "--until");
			return false;
		}
		if (at)
			*(i ? &sides[i].selection.since : &sides[i].selection.until) = at;
		if (selection_check("diff", &sides[i].selection) != COMMAND_FINE)
			return false;
	}
	if (with && !selection.query)
		complain("diff: --with names B's query, but --query for A's is missing");
	else if (argc == 1 && !with && !at)
		complain("diff: one file cannot be compared with itself: give a second file, --query with "
		         "--with, or --at (see queryprof diff --help)");
	else
		return true;
	return false;
}

static int run(int argc, char **argv)
{
	struct side sides[2];
	sqlite3 *both = NULL;
	int result = COMMAND_FINE;

	type = shown_type_of(type_name);
	if (!find_sides(argc, argv, sides))
		return COMMAND_MISUSED;
	if (sqlite3_open(":memory:", &both) != SQLITE_OK)
		result = complain("out of memory");
	else
		result = words_add(both) ? complain("out of memory") : run_bare(both, sql_diff_sides);
	if (!result)
		result = run_bare(both, sql_diff_means);
	for (int i = 0; !result && i < 2; i++)
		result = read_side(both, &sides[i]);
	if (!result && !type.unit[0])
		result = shown_type_refuse(&type, "diff");
	if (!result && is_nothing_left(both))
		result = complain("diff: no run matches on either side");
	for (int i = 0; !result && i < 2; i++)
		print_side(both, &sides[i]);
	if (!result)
		result = compare(both);
	if (!result)
		result = print_plans(both);
	if (!result)
		result = plan_sides_print(both, limit);
	sqlite3_close(both);
	return result;
}

const struct command command_diff = {
	.name = "diff",
	.arguments = "[A [B]] [OPTION]...",
	.summary = "Compares two files, queries or times: what got slower or faster",
	.details = "Compares statements by the exact times of all their runs, including short ones. If an "
		   "option selects single runs, such as a time or a process, it compares logged runs. It "
		   "compares functions by the times of their samples, scaled to as many runs of each "
		   "statement as A has. `change` is from A to B. Statements that differ only in literals are "
		   "one. Functions are the same if their name and their module's name are, so you can "
		   "compare files from before and after a new build.\n\n"
		   "If a statement's plan on A is another one than on B, both are printed next to each "
		   "other, with what "
		   "changed: SQLite's version, indexes, sorts or the order of the loops. Lines in only one "
		   "of the plans "
		   "have the sign < or >, and | is between two different lines.\n\n"
		   "`noise` is ~ if chance alone makes such a difference. For a statement, its runs differ "
		   "too much among themselves (Welch's t-test, 5 %). For a function, the difference is less "
		   "than two standard errors of the difference of two Poisson counts. ? marks a statement "
		   "with one run on a side, because one run shows no variation.",
	.examples = "  queryprof diff before.trace after.trace\n"
		    "  queryprof diff before.trace after.trace --like 'FROM orders' --type wall\n"
		    "  queryprof diff app.trace --query 0193a5b2-77c1 --with 0193a5b2-8d40\n"
		    "  queryprof diff app.trace --at '2026-11-20 09:30'\n",
	.options = options,
	.shared = selection_options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 2,
	.run = run,
};
