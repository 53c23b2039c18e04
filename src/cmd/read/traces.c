/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof traces: which requests were traced, and how long they took.
 */
#include <stdio.h>
#include <time.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/line/moment.h"
#include "sql_traces.h"
#include "store/file/database.h"

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

/* The nanoseconds of an option as a parameter; NULL: not given. bases NULL: a duration. */
static const char *read_time(char text[24], const char *given, const struct moment_bases *bases)
{
	int64_t ns;

	/* check() has checked that it can be parsed. */
	if (!given || !(bases ? moment_parse(given, bases, &ns) : moment_parse_duration(given, &ns)))
		return NULL;
	snprintf(text, 24, "%lld", (long long)ns);
	return text;
}

/* When the file's first and last traces began. */
static struct moment_bases find_bases(sqlite3 *db)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (struct moment_bases){
		.now = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
		.start = database_number(db, "SELECT min(start_ns) FROM span_batches", 0),
		.end = database_number(db, "SELECT max(start_ns) FROM span_batches", 0),
	};
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
	const struct moment_bases bases = find_bases(db);
	char first[24], last[24], least[24];

	(void)argv;
	const struct sql_parameter parameters[] = {
		{ ":by", by },
		{ ":limit", limit },
		{ ":like", like },
		{ ":since", read_time(first, since, &bases) },
		{ ":until", read_time(last, until, &bases) },
		{ ":min_duration", read_time(least, min_duration, NULL) },
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
