/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof queries: which queries ran, and what they cost.
 */
#include <string.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "sql_failed.h"
#include "sql_label_sums.h"
#include "sql_plan_changes.h"
#include "sql_plan_runs.h"
#include "sql_queries.h"
#include "sql_statements.h"
#include "store/file/database.h"

#define LABEL "label:"

static const char *by, *limit, *statements, *regressed, *format_name;

static const char *order_at(size_t index)
{
	static const char *const names[] = { "cpu", "wall", "off", "samples", "start", "label:KEY" };
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

static const struct command_option options[] = {
	{ .name = "by",
	  .value = "WHAT",
	  .to = &by,
	  .kind = OPTION_WORD,
	  .word_at = order_at,
	  .help = "the order: cpu (default), wall, off (time off the CPU), samples or start (newest first); "
	          "label:KEY: a line for each text of that label, with what its samples add up to, and an "
	          "empty one for what has none" },
	{ .name = "statements", .to = &statements, .help = "one line a statement, all its runs together" },
	{ .name = "regressed",
	  .to = &regressed,
	  .help = "one line a change of a statement's plan after which it takes longer" },
	LIMIT_OPTION(&limit, "lines at most (default 20)"),
	OUTPUT_FORMAT_OPTION(&format_name),
	{ 0 },
};

/* COMMAND_MISUSED after a complaint about two options that each choose what a line is. */
static int check_lines(bool by_label)
{
	const char *one = regressed ? "--regressed" : "--statements";
	const char *other = regressed && by ? "--by" : regressed && statements ? "--statements" : NULL;

	if (statements && by_label)
		other = "--by " LABEL "KEY";
	if (!other)
		return COMMAND_FINE;
	complain("queries: %s and %s exclude each other", one, other);
	return COMMAND_MISUSED;
}

static int run(int argc, char **argv)
{
	const bool by_label = by && strncmp(by, LABEL, strlen(LABEL)) == 0;
	const bool by_error = selection.failed && !regressed && !by_label && !statements;
	struct output output = {
		.format = output_format_find(format_name),
		.if_empty = by_error     ? "no run that failed"
		            : regressed  ? "no statement takes longer since its plan changed"
		            : statements ? "no queries"
		                         : "no logged runs (--statements has all runs, however short)",
		.hides_empty = true,
		.folds_last = by_label     ? 0
		              : by_error   ? 3 /* statement, id, text */
		              : regressed  ? 3
		              : statements ? 4
		                           : 3, /* logged runs; id, notes, text */
		.unit = "ns",
	};
	const struct sql_parameter parameters[] = {
		{ ":by", by },
		{ ":limit", limit },
		{ ":key", by_label ? by + strlen(LABEL) : NULL },
		{ ":slower", "1" },
		{ ":for_table", output.format == OUTPUT_TABLE ? "1" : NULL },
		{ NULL, NULL },
	};

	(void)argc;
	if (check_lines(by_label) != COMMAND_FINE || selection_check("queries", &selection) != COMMAND_FINE)
		return COMMAND_MISUSED;
	sqlite3 *db = selection_open(argv[0], &selection);
	if (!db)
		return COMMAND_FAILED;
	int result = selection_require(db, argv[0], &selection);
	if (regressed && !database_number(db, "SELECT EXISTS (SELECT 1 FROM programs)", 0))
		output.if_empty = "no plan is known";
	if (!result && regressed)
		result = run_sql(db, sql_plan_runs, NULL, &(struct output){ .is_bare = true });
	if (!result)
		result = run_sql(db,
		                 by_error     ? sql_failed
		                 : regressed  ? sql_plan_changes
		                 : by_label   ? sql_label_sums
		                 : statements ? sql_statements
		                              : sql_queries,
		                 parameters, &output);
	trace_file_close(db);
	return result;
}

const struct command command_queries = {
	.name = "queries",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Lists queries and what they cost, the costliest first",
	.details =
		"Lists logged runs: those with samples, those that took 10 ms, and the first that failed. "
		"With --statements it counts all runs of each statement in `runs`, its logged ones in "
		"`logged`; where an option chooses single runs, by time or process for one, logged ones "
		"only (with --label all runs of a statement whose comments have the label). A run is from a "
		"statement's first step to its end; runs that differ in their "
		"literals only are one statement. `wall`, `cpu` and `max` are exact, and inside SQLite; "
		"`sampled` is what the samples add up to, on the wall clock with --by wall or off, else on "
		"the CPU clock. `notes` says what may explain the time: scan (that many rows of whole "
		"tables), sort, index (one that SQLite built for the run alone), failed, unfinished (no end "
		"was recorded), and the program's own time between two rows. An id, or its beginning, is "
		"what --query takes, that of a statement --statement.\n\n"
		"--failed has one line a statement and error: `logged` are its logged runs, with the id of "
		"the newest, `failed` all runs of the statement that failed.\n\n"
		"--regressed compares all runs before and after a change of the plan, up to the next change; "
		"a plan "
		"is known if one of its runs had samples. `was` and `now` are the lines that only the one "
		"plan has, or "
		"the other. --by label:KEY counts all runs under the label of a comment, and logged ones "
		"under a label "
		"that the program sets.",
	.examples = "  queryprof queries app.trace\n"
		    "  queryprof queries app.trace --by wall --like 'FROM orders' --limit 5\n"
		    "  queryprof queries app.trace --statements --since yesterday\n"
		    "  queryprof queries app.trace --by label:route\n"
		    "  queryprof queries app.trace --regressed\n"
		    "  queryprof queries app.trace --by start --last 1\n",
	.options = options,
	.shared = selection_options,
	.reads_trace = true,
	.pages = true,
	.arguments_max = 1,
	.run = run,
};
