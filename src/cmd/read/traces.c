/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof traces: which requests were traced, and how long they took.
 */
#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "sql_traces.h"

static const char *by, *limit, *like, *since, *until, *min_duration, *process, *format_name;

static const char *order_at(size_t index)
{
	static const char *const names[] = { "duration", "cpu", "wait", "spans", "start" };
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

static const struct command_option options[] = {
	COMMAND_WORD("by", "WHAT", &by,
	             "the order: duration (default), cpu, wait, spans or start (newest first)", order_at),
	COMMAND_OPTION("like", "TEXT", OPTION_TEXT, &like, "traces with this text in the root's name"),
	COMMAND_OPTION(
		"since", "TIME", OPTION_TIME, &since,
		"traces that began at this time or later: '2026-11-20 09:30', yesterday, 2h, end-10min"),
	COMMAND_OPTION("until", "TIME", OPTION_TIME, &until, "traces that began before TIME"),
	COMMAND_OPTION("min-duration", "TIME", OPTION_PERIOD, &min_duration,
	               "traces that took at least TIME, such as 50ms"),
	COMMAND_OPTION("process", "PROCESS", OPTION_PROCESS, &process,
	               "traces of this process: its number or its program"),
	LIMIT_OPTION(&limit, "lines at most (default 20)"),
	OUTPUT_FORMAT_OPTION(&format_name),
	{ 0 },
};

static int check(char **argv)
{
	(void)argv;
	return selection_check(
		"traces",
		&(struct selection){ .since = since, .until = until, .min_duration = min_duration });
}

static int print_traces(sqlite3 *db, char **argv)
{
	const struct output output = {
		.format = output_format_find(format_name),
		.table.if_empty =
			trace_file_is_pulled(db)
				? "a file from queryprof pull has no traces: ClickHouse has their spans "
				  "in the view span_log"
				: "no traces",
		.table.hides_empty = true,
		.table.folds_last = 2,
		.table.unit = "ns",
	};
	const struct moment_bases bases =
		selection_bases(db, "SELECT min(start_ns), max(start_ns) FROM span_batches");
	struct time_text times[3];

	(void)argv;
	const struct sql_parameter parameters[] = {
		{ ":by", by },
		{ ":limit", limit },
		{ ":like", like },
		{ ":since", selection_time(&times[0], since, &bases) },
		{ ":until", selection_time(&times[1], until, &bases) },
		{ ":min_duration", selection_time(&times[2], min_duration, NULL) },
		{ ":process", process },
		{ ":for_table", output.format == OUTPUT_TABLE ? "1" : NULL },
		{ NULL, NULL },
	};
	return run_sql(db, sql_traces, parameters, &output);
}

const struct command command_traces = {
	.name = "traces",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Lists traced requests, the slowest first",
	.details = "A trace is the tree of what happened in one request of a program that uses queryprof.h, "
		   "or in one statement (the setting trace_statements). The list has traces that ended and "
		   "were kept (the setting trace_keep). `root` is the first span. `cpu` is the sum of the "
		   "CPU samples in its spans, and `wait` the waits of its statements. Give the id, or its "
		   "beginning, to queryprof trace.",
	.examples = "  queryprof traces app.trace\n"
		    "  queryprof traces app.trace --min-duration 100ms --since end-10min\n"
		    "  queryprof traces app.trace --by cpu --like checkout --limit 5\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.check = check,
	.read = print_traces,
};
