/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof report: where the time of the selected runs went.
 */
#include "cmd/line/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/file/out_file.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/shown_type.h"
#include "cmd/read/finding_list.h"
#include "cmd/read/fold_stack.h"
#include "cmd/read/page.h"
#include "cmd/read/plan_tree.h"
#include "cmd/ui/terminal.h"
#include "sql_causes.h"
#include "sql_plan_nodes.h"
#include "sql_report_callers.h"
#include "sql_report_checkpoints.h"
#include "sql_report_clocks.h"
#include "sql_report_frames.h"
#include "sql_report_functions.h"
#include "sql_report_memory.h"
#include "sql_report_program.h"
#include "sql_report_query.h"
#include "sql_report_samples.h"
#include "sql_report_stacks.h"
#include "sql_report_statements.h"
#include "sql_report_times.h"
#include "sql_report_wait_stacks.h"
#include "sql_report_waits.h"
#include "sql_statement_lines.h"
#include "store/file/database.h"

#define PART "0.9"          /* the share of the time that the first statements make up */
#define STATEMENTS_MAX "10" /* statements at most */
#define PLANS_MAX "3"       /* plans, if there are several statements */
#define FINDINGS_MAX 4

static const char *type_name, *limit, *full, *html, *out_path, *no_text, *no_paths, *plan;

static const struct command_option options[] = {
	SHOWN_TYPE_OPTION(&type_name),
	LIMIT_OPTION(&limit, "functions and stacks at most (default 15 and 5)"),
	COMMAND_FLAG("full", &full, "stacks with all their frames, and functions that only called others"),
	COMMAND_FLAG("html", &html, "a page for the browser in one file, which needs no network; with -o"),
	COMMAND_OPTION("o", "FILE", OPTION_FILE, &out_path,
	               "the file that --html writes; - for standard output"),
	COMMAND_FLAG("no-text", &no_text,
	             "with --html: statements by their ids, and plans without names of tables"),
	COMMAND_FLAG("no-paths", &no_paths, "with --html: files of the program without their folders"),
	COMMAND_OPTION("plan", "TEXT", OPTION_TEXT, &plan,
	               "with --html: a page of the statements with this text, which opens at the plan of "
	               "the costliest"),
	{ 0 },
};

/* The parts of the report, in order. */
static const struct part {
	const char *title; /* NULL: none */
	const char *sql;
	const char *doing;
	bool is_bare;
	bool is_sampled;   /* shows samples of one type */
	const char *needs; /* the part is shown if this has rows; NULL: always */
	const char *spare;
} parts[] = {
	{ NULL, sql_report_samples, NULL, true, false, NULL, NULL }, /* for the parts below */
	{ NULL, sql_report_query, "reading queries", true, false, NULL, NULL },
	{ NULL, sql_report_clocks, "adding up", true, false, NULL, NULL },
	{ "Time, as measured and as sampled", sql_report_times, "adding up", false, false, NULL,
	  "share samples" },
	{ "Checkpoints inside these runs", sql_report_checkpoints, "adding up checkpoints", false, false,
	  sql_report_checkpoints, "wal_sync_ms write_ms" },
	{ "Memory that SQLite allocated, by statement", sql_report_memory, "adding up memory", false, false,
	  "SELECT 1 FROM series WHERE trace_type = 'MemorySample'", NULL },
	{ "Time by cause", sql_report_waits, "adding up waits", false, false, sql_report_waits, NULL },
	{ NULL, sql_report_frames, "looking up names", true, false, NULL, NULL },
	{ "The program, outside SQLite", sql_report_program, "adding up the program's time", false, false,
	  "SELECT 1 FROM temp.report_program", NULL },
	{ "Callers in the program", sql_report_callers, "adding up callers", false, true,
	  "SELECT 1 FROM temp.report_stacks JOIN temp.report_shapes USING (stack_id) WHERE caller IS NOT "
	  "NULL",
	  NULL },
	{ "Top functions", sql_report_functions, "adding up functions", false, true, NULL, NULL },
	{ "Top stacks, leaf first", sql_report_stacks, "adding up stacks", false, true, NULL, NULL },
	{ "Top waits, leaf first", sql_report_wait_stacks, "adding up waits", false, false,
	  "SELECT 1 FROM temp.report_waits", NULL },
};

/* The columns that the views of sql/report/samples.sql read. */
static const char samples_read[] =
	"SELECT trace_type, stack_id, wait, logged, finished, samples, value, spread, longest FROM "
	"temp.selected_sums;"
	"SELECT series, trace_type, finished, is_worker, samples, value, spread, stretches, changes FROM "
	"temp.selected_sums";

static bool has_rows(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	bool has = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	           sqlite3_step(statement) == SQLITE_ROW;

	sqlite3_finalize(statement);
	return has;
}

/* Prints several statements, in a line each with its time. */
static int print_statements(sqlite3 *db, const struct shown_type *type)
{
	const struct sql_parameter parameters[] = {
		{ ":by", type_name && type->clock && !strcmp(type->clock, "CPU") ? "cpu" : NULL },
		{ ":part", PART },
		{ ":limit", STATEMENTS_MAX },
		{ ":label", selection.label },
		{ ":database", selection.database },
		{ NULL, NULL },
	};
	const struct output output = {
		.table.hides_empty = true,
		.table.folds_last = 2,
		.table.spare = "statement each_ms",
		.table.unit = "ns",
	};
	int result = run_sql(db, sql_statement_lines, parameters,
	                     &(struct output){ .table.is_bare = true, .doing = "adding up statements" });

	if (!result)
		result = run_sql(db, sql_causes, NULL, &(struct output){ .table.is_bare = true });
	if (result)
		return result;
	printf("Statements with most of the time: %lld of %lld\n",
	       (long long)database_number(db, "SELECT count(*) FROM temp.lines", 0),
	       (long long)database_number(db, "SELECT count(*) FROM temp.selected_statements", 0));
	result = run_sql(db, sql_report_statements, NULL, &output);
	putchar('\n');
	return result;
}

static int print_part(sqlite3 *db, const struct shown_type *type, const struct part *part)
{
	const struct sql_parameter parameters[] = {
		{ ":limit", limit },     { ":trace_type", type->name },
		{ ":unit", type->unit }, { ":full", full },
		{ NULL, NULL },
	};
	char empty[SHOWN_TYPE_NONE];
	const struct output output = {
		.doing = part->doing,
		.table.is_bare = part->is_bare,
		.table.hides_empty = !part->is_sampled || part->needs,
		.table.cuts_middle = part->is_sampled,
		.table.spare = part->spare,
		.table.unit = part->is_sampled ? type->unit : "ns",
		.table.if_empty = part->is_sampled ? empty : NULL,
	};

	if (part->needs && !has_rows(db, part->needs))
		return COMMAND_FINE;
	shown_type_none(type, empty);
	if (part->title)
		printf("\n%s%s%s\n", part->title, part->is_sampled ? ", by " : "",
		       part->is_sampled ? type->title : "");
	return run_sql(db, part->sql, parameters, &output);
}

static void print_finding(const char *line)
{
	terminal_print_cut(line, strlen(line), terminal_room(0), false);
	putchar('\n');
}

/* Prints whether most of the time was outside SQLite, and the greatest costs in at most five lines. */
static int print_findings(sqlite3 *db)
{
	int result = finding_list_make(db);
	const int64_t count = result ? 0 : finding_list_lines(db, 0, print_finding);
	char *inside = result ? NULL : finding_list_inside(db);

	if (inside) {
		terminal_print_words(inside, 0, 0);
		printf("\n\n");
	}
	sqlite3_free(inside);

	if (count > 0) {
		printf("Findings, by what a change could save: %d of %lld; queryprof findings has the "
		       "cures\n",
		       count < FINDINGS_MAX ? (int)count : FINDINGS_MAX, (long long)count);
		finding_list_lines(db, FINDINGS_MAX, print_finding);
		putchar('\n');
	}
	return result;
}

/* First, if the report is by memory. */
static int print_memory(sqlite3 *db, const struct shown_type *type)
{
	size_t i = 0;

	while (parts[i].sql != sql_report_memory)
		i++;
	const int result = print_part(db, type, &parts[i]);
	putchar('\n');
	return result;
}

static int print_report(sqlite3 *db, const struct shown_type *type)
{
	const int64_t statements = database_number(db, "SELECT count(*) FROM temp.selected_statements", 0);
	const int64_t planned = plan_tree_statements(db);
	const bool is_one = statements == 1;

	/* One pass sums up all that these need of the samples. causes.sql can be prepared once temp.lines
	 * exists. */
	int result = finding_list_begin(db);
	if (statements > 1)
		run_sql_prepare(db, sql_causes);
	run_sql_prepare(db, samples_read);
	run_sql_prepare(db, sql_plan_nodes);
	if (!result)
		result = print_findings(db);
	if (!result && type->is_memory)
		result = print_memory(db, type);
	if (!result && statements > 1)
		result = print_statements(db, type);

	for (size_t i = 0; result == COMMAND_FINE && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!type->is_memory || parts[i].sql != sql_report_memory)
			result = print_part(db, type, &parts[i]);
		if (result || parts[i].sql != sql_report_waits || planned == 0)
			continue;
		const struct plan_print how = { .limit = is_one ? NULL : PLANS_MAX,
			                        .title = planned == 1 ? "Plan, by time of its nodes"
			                                              : "Plans, by time of their nodes" };

		result = plan_tree_print(db, type, &how, NULL);
		if (is_one)
			plan_tree_print_others(db, selection.like);
	}
	return result;
}

/* If no CPU time was sampled, the default is wall time. */
static const char *default_type(sqlite3 *db)
{
	static const char has_other_samples[] =
		"SELECT EXISTS (SELECT 1 FROM temp.selected_samples WHERE trace_type = 'CPU')"
		" OR NOT EXISTS (SELECT 1 FROM temp.selected_samples WHERE trace_type IN ('Real', 'OffCPU'))";

	return database_number(db, has_other_samples, 1) ? NULL : SHOWN_TYPE_WALL;
}

/* --- the page ---------------------------------------------------------------------------------- */

static int check(char **argv)
{
	const char *alone = out_path   ? "-o"
	                    : no_text  ? "--no-text"
	                    : no_paths ? "--no-paths"
	                    : plan     ? "--plan"
	                               : NULL;
	const char *textual = type_name ? "--type" : limit ? "--limit" : full ? "--full" : NULL;

	(void)argv;
	if (!html && !alone)
		return COMMAND_FINE;
	if (html && plan && selection.like) {
		complain("report: --plan %s and --like %s cannot be combined, because both are a part of the "
		         "text",
		         plan, selection.like);
		return COMMAND_MISUSED;
	}
	if (html && !textual && out_path) {
		if (plan)
			selection.like = plan;
		return page_is_there("report --html") ? COMMAND_FINE : COMMAND_FAILED;
	}
	if (!html)
		complain("report: %s needs --html", alone);
	else if (textual)
		complain("report: --html and %s cannot be combined, because the page shows all of the wall "
		         "time",
		         textual);
	else
		complain("report: --html needs -o FILE, such as -o report.html");
	return COMMAND_MISUSED;
}

static int write_page(sqlite3 *db, const char *path)
{
	const struct page_options left_out = { .no_text = no_text != NULL,
		                               .no_paths = no_paths != NULL,
		                               .is_plan = plan != NULL };
	const char *const sources[] = { path, NULL };
	struct out_file out;
	char *data = page_data(db, path, &left_out);
	int result = data ? out_file_open(&out, out_path, sources) : COMMAND_FAILED;

	if (!result) {
		page_write(out.stream, data);
		result = out_file_close(&out, true);
	}
	free(data);
	return result;
}

static int read_file(sqlite3 *db, char **argv)
{
	struct shown_type type = shown_type_of(type_name ? type_name : default_type(db));

	if (html)
		return write_page(db, argv[0]);
	if (fold_stack_add(db) != SQLITE_OK)
		return complain("out of memory");
	return shown_type_read(&type, db) ? print_report(db, &type) : shown_type_refuse(&type, "report");
}

const struct command command_report = {
	.name = "report",
	.arguments = "[FILE [STATEMENT]] [OPTION]...",
	.summary = "Reports where the time went: statements, waits, plans, functions",
	.details =
		"Covers all runs of the file, or those that the options select. With several statements, "
		"the statements that make up 90 % of the wall time come first; `why` has the waits and "
		"notes of queries. The first findings come before them, one per line: the share of the time "
		"that a change could save, what was found, and the id of the statement (see findings). Then "
		"follow all times, waits by cause, the most expensive plans, and functions.\n\n"
		"Exact times are of all runs, logged or not, unless an option selects single runs. Samples "
		"show how that time is split. `not sampled` is time that no sample can cover: waits and run "
		"queues of short runs, and threads that ended before their timer was armed. It is a part of "
		"the error. If the sum of the samples is less than the exact time by more than twice the "
		"error, it is the whole difference.\n\n"
		"\"Checkpoints inside these runs\" shows the cost of wal_autocheckpoint for their commits. "
		"`own` is the time of the run with the longest checkpoint without that checkpoint, "
		"`frames_of` are the statements whose frames were copied.\n\n"
		"\"The program, outside SQLite\" shows what the program's own code did between the rows of "
		"these queries, and, if no option selects runs, between the statements of transactions, by "
		"samples (query_profiler_outside). No time of a query includes that. The function is the "
		"program's own function nearest to the leaf or, in Python, Ruby, PHP and Perl, what the "
		"program's line called, with that line.\n\n"
		"If SQLite's memory was sampled (record --memory), a table shows the bytes that it allocated "
		"for "
		"each statement, and the live ones: those not freed, or not until the process ended. With "
		"--type "
		"memory or --type live that table comes first, and plans, functions and stacks are by these "
		"bytes. Memory that is bound, or that opening a connection takes, belongs to no "
		"statement.\n\n"
		"`self` is time in the function itself, `total` includes the functions that it called. "
		"`error` is one standard error of the column before it: in 95 of 100 cases the true value "
		"is within two errors. `interval` appears if the time between samples was longer than the "
		"period, to limit the cost of sampling (see record).\n\n"
		"Callers in the program are the frames nearest to SQLite that do not belong to SQLite, a "
		"driver, an interpreter or a language. They have a file and a line if debug information "
		"does. A stack shows these frames between the caller of SQLite and main(), and counts the "
		"others. It omits the part that it shares with a stack above it. If the file has no samples "
		"of CPU time, the report is by wall time, unless --type is given.\n\n"
		"--html writes the page of `queryprof live` to one file: statements, plans, callers, runs, "
		"findings and losses. You can open it from disk and mail it. It contains the texts of "
		"statements, but no other data of the database. With --no-text, statements have their ids, "
		"nodes of plans show only the operation, and findings only their kind. With --plan, the page "
		"is "
		"about the statements with that text, and opens at the costliest one.\n\n"
		"STATEMENT is a part of the statement's text, as with --like.",
	.examples = "  queryprof report app.trace\n"
		    "  queryprof report app.trace --query 0193a5b2-77c1\n"
		    "  queryprof report app.trace 'FROM orders' --type wall --last 10\n"
		    "  queryprof report app.trace --html -o report.html\n"
		    "  queryprof report app.trace --html --plan 'FROM orders' -o plan.html\n",
	.options = options,
	.shared = selection_options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 2,
	.check = check,
	.read = read_file,
};
