/*
 * queryprof report: where the time of a query, of some, or of all of them went.
 */
#include "command.h"

#include <string.h>

#include "sql_report_functions.h"
#include "sql_report_query.h"
#include "sql_report_samples.h"
#include "sql_report_stacks.h"
#include "sql_report_times.h"

static const char *query_id, *like, *clock_name, *limit;

static const struct command_option options[] = {
	{ "query", "ID", "only this query; the beginning of its id is enough", &query_id },
	{ "like", "TEXT", "only queries whose text has this in it (LIKE's % and _ work)", &like },
	{ "clock", "CLOCK", "samples of this clock: cpu (default) or real", &clock_name },
	{ "limit", "N", "functions and stacks at most (default 15 and 5)", &limit },
	{ NULL, NULL, NULL, NULL },
};

/* The parts of the report, in order. */
static const struct part {
	const char *title; /* NULL: none */
	const char *sql;
	bool is_bare;
	bool is_sampled; /* shows samples of one clock */
} parts[] = {
	{ NULL, sql_report_query, true, false },
	{ NULL, sql_report_samples, true, false }, /* for those that follow */
	{ "Time, as measured and as sampled", sql_report_times, false, false },
	{ "Top functions", sql_report_functions, false, true },
	{ "Top stacks, leaf first", sql_report_stacks, false, true },
};

/* Whole ids that the one given stands for: itself if there is such a query, else
 * all that begin with it. Two rows are enough to know that it is not one. (An id of
 * the user's own may have several runs.) */
static const char find_ids[] =
	"WITH ids AS (SELECT DISTINCT query_id FROM queries WHERE id <> 0) "
	"SELECT query_id FROM ids WHERE query_id = ?1 "
	"UNION ALL SELECT query_id FROM ids WHERE substr(query_id, 1, length(?1)) = ?1 AND ?1 <> '' "
	"AND NOT EXISTS (SELECT 1 FROM ids WHERE query_id = ?1) LIMIT 2";

char *complete_query_id(sqlite3 *db, const char *path, const char *given)
{
	sqlite3_stmt *row = NULL;
	char *id = NULL;
	int found = 0;

	if (sqlite3_prepare_v2(db, find_ids, -1, &row, NULL) == SQLITE_OK)
		sqlite3_bind_text(row, 1, given, -1, SQLITE_STATIC);
	while (sqlite3_step(row) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(row, 0);
		found++;
		if (!id)
			id = sqlite3_mprintf("%s", text);
	}
	sqlite3_finalize(row);
	if (found == 1)
		return id;
	if (found)
		complain("%s: more than one query's id begins with %s", path, given);
	else
		complain("%s: no query has the id %s", path, given);
	sqlite3_free(id);
	return NULL;
}

static int print_report(sqlite3 *db, const char *id)
{
	bool real = clock_name && strcmp(clock_name, "real") == 0;
	const struct sql_parameter parameters[] = {
		{ ":query_id", id }, { ":like", like }, { ":limit", limit },
		{ ":trace_type", real ? "Real" : "CPU" },
		{ NULL, NULL },
	};
	int result = COMMAND_FINE;

	for (size_t i = 0; result == COMMAND_FINE && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct part *part = &parts[i];
		struct output output = { .is_bare = part->is_bare };
		if (part->is_sampled)
			output.if_empty = real ? "no samples on the real clock" : "no samples on the CPU clock";
		if (part->title)
			printf("\n%s%s\n", part->title,
			       !part->is_sampled ? "" : real ? ", by real time" : ", by CPU time");
		result = sql_run(db, part->sql, parameters, &output);
	}
	return result;
}

static int run(int argc, char **argv)
{
	(void)argc;
	if (clock_name && strcmp(clock_name, "cpu") != 0 && strcmp(clock_name, "real") != 0) {
		complain("report: --clock %s; expected cpu or real", clock_name);
		return COMMAND_MISUSED;
	}
	if (query_id && like) {
		complain("report: --query and --like exclude each other");
		return COMMAND_MISUSED;
	}
	if (limit && (!limit[0] || limit[strspn(limit, "0123456789")])) {
		complain("report: --limit %s; expected a number", limit);
		return COMMAND_MISUSED;
	}
	sqlite3 *db = trace_file_open(argv[0]);
	if (!db)
		return COMMAND_FAILED;
	char *id = query_id ? complete_query_id(db, argv[0], query_id) : NULL;
	int result = query_id && !id ? COMMAND_FAILED : print_report(db, id);
	sqlite3_free(id);
	trace_file_close(db);
	return result;
}

const struct command command_report = {
	.name = "report",
	.arguments = "FILE [OPTION]...",
	.summary = "Reports where the time went: functions and stacks",
	.details =
		"Without --query or --like: all queries of the file. `self` is time in the\n"
		"function itself, `total` also in what it called. The sampled times stand beside\n"
		"the exact ones, with their standard error.\n",
	.examples =
		"  queryprof report app.trace\n"
		"  queryprof report app.trace --query 0193a5b2-77c1\n"
		"  queryprof report app.trace --like 'FROM orders' --clock real\n",
	.options = options,
	.arguments_min = 1,
	.arguments_max = 1,
	.run = run,
};
