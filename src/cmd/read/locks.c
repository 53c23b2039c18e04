/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof locks: the statements that kept others waiting for locks of databases; idle transactions.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/line/moment.h"
#include "cmd/ui/complain.h"
#include "sql_idle_transactions.h"
#include "sql_lock_chains.h"
#include "sql_lock_holders.h"

static const char *format_name, *idle, *chains;

static const struct command_option options[] = {
	COMMAND_OPTION("idle", "TIME", OPTION_TEXT, &idle,
	               "transactions in which the program did not call SQLite for TIME, such as 1s"),
	COMMAND_FLAG("chains", &chains, "statements that waited for one that waited itself"),
	OUTPUT_FORMAT_OPTION(&format_name),
	{ 0 },
};

static const struct table_style of_holders = {
	.if_empty = "no statement waited for a lock",
	.folds_last = 1,
	.hides_empty = true,
	.paragraphs = "cause doing cure",
	.spare = "holder_session_id victims longest_ms holder",
	.unit = "ns",
};

static const struct table_style of_transactions = {
	.if_empty = "no transaction was idle for so long",
	.folds_last = 2,
	.hides_empty = true,
	.paragraphs = "cause",
	.spare = "session_id began",
	.unit = "ns",
};

static const struct table_style of_chains = {
	.if_empty = "no statement waited for one that waited for a lock itself",
	.folds_last = 1,
	.hides_empty = true,
	.paragraphs = "cause",
	.unit = "ns",
};

static char idle_ns[32];

static int check(char **argv)
{
	int64_t ns;

	(void)argv;
	if (idle && chains) {
		complain("locks: --idle and --chains cannot be combined");
		return COMMAND_MISUSED;
	}
	if (idle && (!moment_parse_duration(idle, &ns) || ns < 0)) {
		complain("locks: --idle %s; expected a time with its unit, such as 500ms or 1s", idle);
		return COMMAND_MISUSED;
	}
	if (idle)
		snprintf(idle_ns, sizeof(idle_ns), "%" PRId64, ns);
	return COMMAND_FINE;
}

static int read_file(sqlite3 *db, char **argv)
{
	struct output output = { .format = output_format_find(format_name),
		                 .table = chains ? of_chains
		                          : idle ? of_transactions
		                                 : of_holders };
	const char *sql = chains ? sql_lock_chains : idle ? sql_idle_transactions : sql_lock_holders;
	const struct sql_parameter parameters[] = { { ":idle_ns", idle ? idle_ns : NULL }, { NULL, NULL } };

	(void)argv;
	if (trace_file_is_pulled(db))
		output.table.if_empty =
			"a file from queryprof pull has no lock waits: ClickHouse has them in the view "
			"lock_waits";
	return run_sql(db, sql, parameters, &output);
}

const struct command command_locks = {
	.name = "locks",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Shows which statements kept others waiting for database locks",
	.details =
		"Prints a line for each holder and lock. `waited` is the sum of the waits for it; the other "
		"columns are the longest wait, the number of waits, the number of waits that ended with "
		"SQLITE_BUSY, and the number of connections that waited. The holder is the statement that "
		"took the lock, such as BEGIN IMMEDIATE. Its process is 0 if it is not known. `holder` is "
		"its program, `open` the time that its longest transaction lasted, `outside` the part of "
		"that time in which the program did not call SQLite, and `caller` the line that ran the "
		"statement.\n\n"
		"Sentences follow each line. `cause` is the longest of these waits, and why it failed, if "
		"it did. `doing` is what the program did outside SQLite, with the function that took most "
		"of the time. `cure` is how to avoid the wait, if that is known.\n\n"
		"With --idle, each line is a transaction, open ones first: `state` is open (when last "
		"seen), committed, rolled back, ended (it wrote nothing), or killed (its process ended "
		"before). `open` is the time from its first lock to its end, `write_lock` how long it held "
		"a lock to write, `statements` how many ended in it, and `waited` how long others waited "
		"for it. `record` knows an open transaction once it has been open for 100 ms.\n\n"
		"With --chains, each line is a statement that waited for one that waited itself: for "
		"example, an INSERT waits for a checkpoint, which waits for a reader. The view lock_chains "
		"has a row for each link, for the 1,000 longest waits.\n\n"
		"The view lock_waits has a row for each wait, and lock_story a sentence for each: "
		"`queryprof sql FILE 'SELECT * FROM lock_waits'`.",
	.examples = "  queryprof locks app.trace\n"
		    "  queryprof locks app.trace --idle 1s\n"
		    "  queryprof locks app.trace --chains\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.check = check,
	.read = read_file,
};
