/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof metrics: counters of a trace file, which may be named by a process that is recorded, for
 * Prometheus, in the text format of OpenMetrics.
 */
#include "cmd/live/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/live/processes.h"
#include "sql_metrics.h"

static const char *limit;

static const struct command_option options[] = {
	LIMIT_OPTION(&limit, "statements with labels of their own (default 100); the others are added up"),
	{ 0 },
};

/* A line may have bytes of a stranger's file, which would make the whole text invalid. */
static bool print_line(const char *line, size_t size)
{
	char *valid = text_repair(line, size);

	if (valid)
		puts(valid);
	free(valid);
	return valid != NULL;
}

/* `given` is a file, or a process that is recorded. NULL after a complaint. */
static sqlite3 *open_file(const char *given)
{
	struct live live;
	sqlite3 *db = NULL;

	if (given[strspn(given, "0123456789")])
		return trace_file_open(given);
	if (!live_open("metrics", given, &live, NULL)) {
		db = trace_file_open(live.path);
		live_close(&live);
	}
	return db;
}

int metrics_print(sqlite3 *db, const char *most)
{
	const struct sql_parameter parameters[] = { { ":limit", most ? most : "100" }, { NULL, NULL } };
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, sql_metrics, -1, &rows, NULL);

	if (rows)
		run_sql_bind(rows, parameters);
	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *line = (const char *)sqlite3_column_text(rows, 0);

		code = line && print_line(line, (size_t)sqlite3_column_bytes(rows, 0)) ? SQLITE_OK
		                                                                       : SQLITE_NOMEM;
	}
	if (code != SQLITE_DONE)
		complain("metrics: %s", sqlite3_errmsg(db));
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? COMMAND_FINE : COMMAND_FAILED;
}

static int run(int argc, char **argv)
{
	sqlite3 *db = open_file(argv[0]);
	int result = COMMAND_FAILED;

	(void)argc;
	if (db) {
		result = metrics_print(db, limit);
		trace_file_close(db);
	}
	return result;
}

const struct command command_metrics = {
	.name = "metrics",
	.arguments = "[PID|FILE] [OPTION]...",
	.summary = "Prints counters for Prometheus (OpenMetrics)",
	.details =
		"Counters of each statement and program (runs, errors, rows, times, rows visited, sorts), "
		"waits of logged runs by cause, and losses with their reasons. A recording may still be "
		"writing to the file. PID is a process that is recorded, and names the trace file, with all "
		"processes in it; the file's counters are at most about a second old. Have a timer write the "
		"output to a file for the node exporter's textfile collector.\n\n"
		"A statement that takes more time later may leave the statement (other), which Prometheus "
		"sees as a reset of that counter. The waits are a gauge, because logged runs are removed if "
		"the file grows too large. packaging/prometheus/queryprof.rules.yml in the source contains "
		"alerts.",
	.examples = "  queryprof metrics app.trace\n"
		    "  queryprof metrics $(pidof -s server)\n"
		    "  queryprof metrics app.trace --limit 20 > /var/lib/node_exporter/app.prom\n",
	.options = options,
	.reads_file = true,
	.arguments_max = 1,
	.run = run,
};
