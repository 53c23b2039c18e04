/*
 * queryprof queries: which queries ran, and what they cost.
 */
#include "command.h"

#include <string.h>

#include "sql_queries.h"
#include "sql_statements.h"

static const char *by, *like, *since, *until, *limit, *statements, *format_name;

static const struct command_option options[] = {
	{ "by", "WHAT", "order: cpu (default), time, samples or start (newest first)", &by },
	{ "like", "TEXT", "only queries whose text has this in it (LIKE's % and _ work)", &like },
	{ "since", "TIME", "only those started then or later: '2026-11-20 09:30' (UTC)", &since },
	{ "until", "TIME", "only those started before", &until },
	{ "limit", "N", "lines at most (default 20)", &limit },
	{ "statements", NULL, "one line a statement, all its runs together", &statements },
	{ "format", "FORMAT", OUTPUT_FORMATS, &format_name },
	{ NULL, NULL, NULL, NULL },
};

static bool is_known_order(const char *name)
{
	static const char *const names[] = { "cpu", "time", "samples", "start" };

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return !name;
}

static int run(int argc, char **argv)
{
	struct output output = { .if_empty = "no queries" };

	(void)argc;
	if (!output_format_find(format_name, &output.format)) {
		complain("queries: there is no format %s; expected " OUTPUT_FORMATS, format_name);
		return COMMAND_MISUSED;
	}
	if (!is_known_order(by)) {
		complain("queries: --by %s; expected cpu, time, samples or start", by);
		return COMMAND_MISUSED;
	}
	if (limit && (!limit[0] || limit[strspn(limit, "0123456789")])) {
		complain("queries: --limit %s; expected a number", limit);
		return COMMAND_MISUSED;
	}
	sqlite3 *db = trace_file_open(argv[0]);
	if (!db)
		return COMMAND_FAILED;
	const struct sql_parameter parameters[] = {
		{ ":by", by }, { ":like", like }, { ":since", since },
		{ ":until", until }, { ":limit", limit }, { NULL, NULL },
	};
	int result = sql_run(db, statements ? sql_statements : sql_queries, parameters, &output);
	trace_file_close(db);
	return result;
}

const struct command command_queries = {
	.name = "queries",
	.arguments = "FILE [OPTION]...",
	.summary = "Lists queries and what they cost, the costliest first",
	.details =
		"Times are exact; samples are those on the CPU clock and on the real one. An id,\n"
		"or its beginning, is what `queryprof report --query` takes.\n",
	.examples =
		"  queryprof queries app.trace\n"
		"  queryprof queries app.trace --by time --like 'FROM orders' --limit 5\n"
		"  queryprof queries app.trace --statements\n"
		"  queryprof queries app.trace --by start --limit 1\n",
	.options = options,
	.arguments_min = 1,
	.arguments_max = 1,
	.run = run,
};
