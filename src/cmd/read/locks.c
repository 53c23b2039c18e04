/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof locks: the statements that kept others waiting for locks of databases.
 */
#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "sql_lock_holders.h"

static const char *format_name;

static const struct command_option options[] = {
	OUTPUT_FORMAT_OPTION(&format_name),
	{ 0 },
};

static int run(int argc, char **argv)
{
	struct output output = {
		.format = output_format_find(format_name),
		.table.if_empty = "no statement waited for a lock",
		.table.folds_last = 1,
		.table.hides_empty = true,
		.table.paragraphs = "cause doing cure",
		.table.spare = "holder_session_id victims longest_ms holder",
		.table.unit = "ns",
	};
	const struct sql_parameter none[] = { { NULL, NULL } };
	sqlite3 *db = trace_file_open(argv[0]);

	(void)argc;
	if (!db)
		return COMMAND_FAILED;
	if (trace_file_is_pulled(db))
		output.table.if_empty =
			"a file from queryprof pull has no lock waits: ClickHouse has them in the view "
			"lock_waits";
	int result = run_sql(db, sql_lock_holders, none, &output);
	trace_file_close(db);
	return result;
}

const struct command command_locks = {
	.name = "locks",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Lists who kept others waiting for database locks",
	.details = "Has a line for each holder and lock. `waited` is how long others waited for it in all; "
		   "the other columns are the longest single wait, the number of waits, how many of them "
		   "ended with SQLITE_BUSY, and how many connections waited. The holder is the statement "
		   "that took the lock, such as BEGIN IMMEDIATE. Its process is 0 if unknown. `holder` is "
		   "its program, `open` the time that its longest transaction lasted, `outside` the part of "
		   "that time in which the program did not call SQLite, and `caller` the line that ran the "
		   "statement.\n\n"
		   "Sentences follow each line: the longest of these waits and why it failed, if it did "
		   "(cause); on what the holder spent the time outside SQLite, each with the function that "
		   "took most of it (doing); and what would avoid the wait, if that is known (cure).\n\n"
		   "The view lock_waits has the single waits, and lock_story a sentence for each: `queryprof "
		   "sql FILE 'SELECT * FROM lock_waits'`.",
	.examples = "  queryprof locks app.trace\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.run = run,
};
