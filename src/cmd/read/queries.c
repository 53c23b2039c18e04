/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof queries: which queries ran, and what they cost.
 */
#include <string.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/line/command.h"
#include "sql_caller_sums.h"
#include "sql_causes.h"
#include "sql_failed.h"
#include "sql_label_sums.h"
#include "sql_plan_changes.h"
#include "sql_plan_runs.h"
#include "sql_run_lines.h"
#include "sql_runs.h"
#include "sql_statement_lines.h"
#include "sql_statements.h"
#include "store/file/database.h"

#define CALLER "caller"
#define LABEL "label:"

static const char *by, *limit, *statements, *runs, *regressed, *format_name;

static const char *order_at(size_t index)
{
	static const char *const names[] = { "wall", "cpu", "off", "samples", "start", CALLER, "label:KEY" };
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

static const struct command_option options[] = {
	COMMAND_WORD("by", "WHAT", &by,
	             "the order: wall (default), cpu, off (time off the CPU), samples or start (newest "
	             "first); caller: "
	             "a line for each line of the program that runs statements; label:KEY: a line for each "
	             "text of that "
	             "label, with the sum of its samples, and an empty line for work without it",
	             order_at),
	COMMAND_FLAG("statements", &statements, "one line for each statement: the default"),
	COMMAND_FLAG("runs", &runs, "one line for each logged run"),
	COMMAND_FLAG("regressed", &regressed,
	             "one line for each change of a plan that made a statement slower"),
	LIMIT_OPTION(&limit, "lines at most (default 20)"),
	OUTPUT_FORMAT_OPTION(&format_name),
	{ 0 },
};

static bool is_by_label(void)
{
	return by && strncmp(by, LABEL, strlen(LABEL)) == 0;
}

static bool is_by_caller(void)
{
	return by && strcmp(by, CALLER) == 0;
}

/* COMMAND_MISUSED after a complaint: two options both choose what a line represents. */
static int check_lines(const char *by_what)
{
	const char *const chosen[] = { statements ? "--statements" : NULL, runs ? "--runs" : NULL,
		                       regressed ? "--regressed" : NULL,
		                       by_what           ? by_what
		                       : by && regressed ? "--by"
		                                         : NULL };
	const char *one = NULL;

	for (size_t i = 0; i < sizeof(chosen) / sizeof(*chosen); i++) {
		if (one && chosen[i]) {
			complain("queries: %s and %s cannot be combined", one, chosen[i]);
			return COMMAND_MISUSED;
		}
		one = one ? one : chosen[i];
	}
	return COMMAND_FINE;
}

/* What a line represents: the SQL that prints the lines, the SQL before it without a result, and the
 * format. */
struct lines {
	const char *prepare[2], *print, *if_empty, *spare;
	int folds_last;
	const char *paragraphs;
};

static const struct lines of_statements = { .prepare = { sql_statement_lines, sql_causes },
	                                    .print = sql_statements,
	                                    .if_empty = "no queries",
	                                    .spare = "rows cpu_ms",
	                                    .folds_last = 3 },
			  of_runs = { .prepare = { sql_run_lines, sql_causes },
	                              .print = sql_runs,
	                              .if_empty =
	                                      "no logged runs (queries without --runs counts all, however "
	                                      "short)",
	                              .folds_last = 3 },
			  of_changes = { .prepare = { sql_plan_runs },
	                                 .print = sql_plan_changes,
	                                 .if_empty = "no statement takes longer since its plan changed",
	                                 .folds_last = 3 },
			  of_labels = { .print = sql_label_sums, .if_empty = "no queries" },
			  of_callers = { .print = sql_caller_sums,
	                                 .if_empty = "no queries",
	                                 .spare = "statements sampled_wall_ms function logged",
	                                 .folds_last = 1 },
			  of_errors = { .print = sql_failed,
	                                .if_empty = "no run that failed",
	                                .folds_last = 3,
	                                .paragraphs = "cause cure" };

static const struct lines *find_lines(void)
{
	return regressed                         ? &of_changes
	       : is_by_label()                   ? &of_labels
	       : is_by_caller()                  ? &of_callers
	       : runs                            ? &of_runs
	       : selection.failed && !statements ? &of_errors
	                                         : &of_statements;
}

static int print(sqlite3 *db, const struct lines *lines, const struct sql_parameter *parameters)
{
	struct output output = {
		.format = output_format_find(format_name),
		.table.if_empty = lines->if_empty,
		.table.hides_empty = true,
		.table.folds_last = lines->folds_last,
		.table.spare = lines->spare,
		.table.paragraphs = lines->paragraphs,
		.table.unit = "ns",
	};
	int result = COMMAND_FINE;

	if (regressed && !database_number(db, "SELECT EXISTS (SELECT 1 FROM programs)", 0))
		output.table.if_empty = "no plan is known";
	for (size_t i = 0; !result && i < 2 && lines->prepare[i]; i++)
		result =
			run_sql(db, lines->prepare[i], parameters, &(struct output){ .table.is_bare = true });
	return result ? result : run_sql(db, lines->print, parameters, &output);
}

static int check(char **argv)
{
	(void)argv;
	return check_lines(is_by_label() ? "--by " LABEL "KEY" : is_by_caller() ? "--by " CALLER : NULL);
}

static int read_file(sqlite3 *db, char **argv)
{
	const struct sql_parameter parameters[] = {
		{ ":by", by },
		{ ":limit", limit },
		{ ":label", selection.label },
		{ ":database", selection.database },
		{ ":key", is_by_label() ? by + strlen(LABEL) : NULL },
		{ ":slower", "1" },
		{ ":for_table", output_format_find(format_name) == OUTPUT_TABLE ? "1" : NULL },
		{ NULL, NULL },
	};

	(void)argv;
	return print(db, find_lines(), parameters);
}

const struct command command_queries = {
	.name = "queries",
	.arguments = "[FILE [STATEMENT]] [OPTION]...",
	.summary = "Lists statements and their cost, the most expensive first",
	.details =
		"Lists statements. All runs of a statement count together, however short. Queries that "
		"differ only in their literals are one statement.\n\n"
		"`share` is the statement's part of the time of all statements, listed or not. `wall` and "
		"`cpu` are the time inside SQLite, including preparing. They are exact, except for runs "
		"with more than 128 rows, which have a known error (execution_time_error_ns). `each` is the "
		"mean of a run without preparing. 99 of 100 runs took no longer than `p99`. `\xe2\x89\xa4` "
		"marks an upper "
		"bound, up to twice the exact value between 1 us and 4.3 s. `waits` are the largest causes "
		"of waits, "
		"as shares of the wall time: "
		"lock, read, write, sync, mutex, sleep, run queue (ready, but no processor was free), "
		"other. `unknown` is time off the CPU in runs that were not logged.\n\n"
		"`notes` may explain the time: failed; unfinished (no end was recorded); another plan of "
		"the same statement that is faster, by the mean of a run, and the statement that may have "
		"changed the plan; scan (so many rows of whole tables); sort; automatic index (SQLite built "
		"one for the run); trigger, foreign key action and virtual table (parts of the CPU time); "
		"the mutex with the longest waits; cache spill (the part of the CPU time that wrote pages "
		"because the page cache was full); prepare and checkpoint (parts of the wall time; "
		"checkpoint excludes the run queue); the statement that held the lock, how long its longest "
		"transaction was open, and how much of that was outside SQLite; between rows (the program's "
		"own time while a statement was open, which is not part of the wall time, and its share of "
		"both); and the line of the program. The column `statement` is an id for --statement; its "
		"beginning is enough.\n\n"
		"If an option selects single runs, such as a time or a process, the numbers cover the "
		"logged runs. With --label they cover all runs of statements whose comments have the label. "
		"Logged runs are those with samples, those that took 10 ms, and the first ones that failed. "
		"--runs lists them, with ids for --query. `sampled` is the sum of their samples, on the CPU "
		"clock with --by cpu, otherwise on the wall clock.\n\n"
		"--failed has one line for each statement and error. `failed` is the number of runs with "
		"that error, `logged` the number of these in query_log, `newest` the start of the newest, "
		"and `query_id` its id. `all_failed` is the number of the statement's runs with any error, "
		"if it is larger. queryprof counts failed runs without their error, so `failed` is empty if "
		"several errors have more runs than are logged. If a lock was refused, sentences follow: "
		"the cause for the newest run, and how to avoid it.\n\n"
		"--regressed compares all runs before and after a change of the plan, up to the next "
		"change. It knows the plans that queryprof has read. `was` are the lines that only the old "
		"plan has, `now` those that only the new plan has.\n\n"
		"--by label:KEY has one line for each text of the label. `runs`, `wall` and `cpu` cover all "
		"runs whose comment has it. They are empty if the program sets the label itself, or if an "
		"option selects single runs. `sampled_runs` are the runs with samples under the label, and "
		"`sampled_cpu` and `sampled_wall` the sums of these samples.\n\n"
		"--by caller has one line for each line of the program that runs statements, with the "
		"statement that takes most of its time. Only logged runs have a caller. So `runs` is an "
		"estimate: the other runs of a statement are divided in proportion to the samples. "
		"`runs_error` is its standard error, at least a quarter of those other runs. With "
		"--statement, the lines are the callers of one statement.",
	.examples = "  queryprof queries app.trace\n"
		    "  queryprof queries app.trace 'FROM orders' --by cpu --limit 5\n"
		    "  queryprof queries app.trace --runs --since yesterday\n"
		    "  queryprof queries app.trace --by label:route\n"
		    "  queryprof queries app.trace --by caller\n"
		    "  queryprof queries app.trace --caller orders.py:31\n"
		    "  queryprof queries app.trace --regressed\n"
		    "  queryprof queries app.trace --runs --by start --last 1\n",
	.options = options,
	.shared = selection_options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 2,
	.check = check,
	.read = read_file,
};
