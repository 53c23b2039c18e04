/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof wal: the sizes of the WALs, what kept checkpoints from emptying them, and which statements ran
 * checkpoints.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/terminal.h"
#include "sql_wal.h"
#include "sql_wal_checkpoints.h"
#include "sql_wal_writers.h"
#include "store/file/database.h"

static const char *limit, *format_name;

static const struct command_option options[] = {
	LIMIT_OPTION(&limit, "WALs, and lines of each table, at most (default 5)"),
	OUTPUT_TEXT_FORMAT_OPTION(&format_name),
	{ 0 },
};

#define INDENT 13 /* "checkpoints  " */
#define PARTS_MAX 60

static void print_line(const char *name, const char *line)
{
	printf("%-*s", INDENT, name);
	terminal_print(line, strlen(line), 0, PARTS_MAX);
	putchar('\n');
}

static int print_stories(sqlite3 *db)
{
	enum { STORY, BARS, TICKS, SECONDS };
	const int room = terminal_room(INDENT);
	char width[16];
	const struct sql_parameter parameters[] = { { ":width", width },
		                                    { ":limit", limit },
		                                    { NULL, NULL } };
	sqlite3_stmt *rows = NULL;
	int code, count = 0;

	snprintf(width, sizeof(width), "%d", room < PARTS_MAX ? room : PARTS_MAX);
	code = sqlite3_prepare_v2(db, sql_wal, -1, &rows, NULL);
	run_sql_bind(rows, parameters);
	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		printf(count++ ? "\n" : "");
		terminal_print_words((const char *)sqlite3_column_text(rows, STORY), 0, 0);
		printf("\n\n");
		print_line("frames", (const char *)sqlite3_column_text(rows, BARS));
		print_line("checkpoints", (const char *)sqlite3_column_text(rows, TICKS));
		printf("%-*s%.3f s; | all frames were copied, x some were left\n", INDENT, "",
		       sqlite3_column_double(rows, SECONDS));
		code = SQLITE_OK;
	}
	if (code != SQLITE_DONE)
		complain("wal: %s", sqlite3_errmsg(db));
	else if (!count)
		printf("%s\n",
		       trace_file_is_pulled(db)
		               ? "a file from queryprof pull has no WALs: ClickHouse has them in the views "
		                 "checkpoints and wal_log"
		               : "no change of a WAL was recorded, and no checkpoint");
	sqlite3_finalize(rows);
	return code != SQLITE_DONE ? COMMAND_FAILED : COMMAND_FINE;
}

static int print_table(sqlite3 *db, const char *title, const char *sql, const char *needs)
{
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	const struct output output = {
		.table.folds_last = 1,
		.table.hides_empty = true,
		.table.spare = "lock_ms write_ms sync_ms",
		.table.unit = "ns",
	};

	if (!database_number(db, needs, 0))
		return COMMAND_FINE;
	printf("\n%s\n", title);
	return run_sql(db, sql, parameters, &output);
}

static int read_file(sqlite3 *db, char **argv)
{
	int result;

	(void)argv;
	if (!output_is_text(format_name))
		return run_sql(db, "SELECT * FROM wal_story ORDER BY largest_frames DESC, database", NULL,
		               &(struct output){ .format = output_format_find(format_name) });
	result = print_stories(db);
	if (!result)
		result = print_table(db, "Checkpoints, by the statements that ran them", sql_wal_checkpoints,
		                     "SELECT EXISTS (SELECT 1 FROM wal_checkpoints)");
	if (!result)
		result = print_table(db, "Frames, by the statements that appended them", sql_wal_writers,
		                     "SELECT EXISTS (SELECT 1 FROM wal_events WHERE event = 0)");
	return result;
}

const struct command command_wal = {
	.name = "wal",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Shows why WALs grow, and which statements pay for checkpoints",
	.details =
		"For each WAL, prints how large it was, which reader kept checkpoints from copying its "
		"frames and for how long, and how long the longest checkpoint took. A WAL can start again "
		"at its first frame only after all of its frames were copied and no reader uses them.\n\n"
		"The blocks show the number of frames over time, the marks below them the checkpoints. "
		"`origin` is the reason for a checkpoint: `commit` because its commit found 1000 frames or "
		"more (wal_autocheckpoint), `PRAGMA`, `function` (sqlite3_wal_checkpoint_v2) or `close` of "
		"the last connection. `frames_of` are the statements whose frames it copied. Frames of a "
		"transaction count for its first statement that writes.\n\n"
		"The view checkpoints has a row for each checkpoint, and wal_log a row for each change: "
		"`queryprof sql FILE 'SELECT * FROM checkpoints'`. Checkpoints of processes that are not "
		"recorded are not known.",
	.examples = "  queryprof wal app.trace\n"
		    "  queryprof wal app.trace --format json\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.read = read_file,
};
