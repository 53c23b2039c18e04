/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof dump: what the recorded processes do at this moment, once.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/live/processes.h"
#include "cmd/live/row.h"
#include "cmd/live/snapshot.h"
#include "cmd/ui/output.h"
#include "cmd/ui/terminal.h"
#include "sql_live_runs.h"
#include "sql_live_transactions.h"

static const char *format_name;

static const char *format_at(size_t index)
{
	static const char *const names[] = { "text", "json" };

	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

static const struct command_option options[] = {
	{ .name = "format",
	  .value = "FORMAT",
	  .help = "text or json; text if not given",
	  .to = &format_name,
	  .kind = OPTION_WORD,
	  .word_at = format_at },
	{ 0 },
};

/* --- text ---------------------------------------------------------------------------------- */

static void print_field(const char *name, const char *text)
{
	const int indent = 13;

	if (!*text)
		return;
	printf("  %-*s", indent - 2, name);
	terminal_print_words(text, indent, indent);
	putchar('\n');
}

/* One line: line breaks become `between`, and characters that would control the terminal blanks. */
static char *in_one_line(const char *text, const char *separator)
{
	sqlite3_str *line = sqlite3_str_new(NULL);

	for (; *text; text++)
		if (*text == '\n')
			sqlite3_str_appendall(line, separator);
		else
			sqlite3_str_appendchar(line, 1, *text == '\t' || *text == '\r' ? ' ' : *text);
	return sqlite3_str_finish(line);
}

static void print_run(sqlite3_stmt *row)
{
	char words[ROW_WORDS], age[ROW_DURATION];
	char *query = in_one_line(row_text(row, "query"), " "),
	     *stack = in_one_line(row_text(row, "stack"), " < "), *head = NULL;

	head = sqlite3_mprintf("\nthread %s%s%s of process %s (%s): %s, %s", row_text(row, "thread_id"),
	                       row_has(row, "thread_name") ? " " : "", row_text(row, "thread_name"),
	                       row_text(row, "process_id"), row_text(row, "program"),
	                       row_duration(row, "elapsed_ns", age), row_doing(row, words));
	if (head) {
		putchar('\n');
		terminal_print(head + 1, strlen(head + 1), 0, INT_MAX);
		putchar('\n');
	}
	print_field("statement", query && *query ? query : "not known");
	print_field("database", row_text(row, "database"));
	print_field("caller", row_text(row, "caller"));
	print_field("holder", row_holder(row, words));
	if (row_number(row, "is_running")) {
		row_duration(row, "sample_age_ns", age);
		print_field("plan node",
		            row_has(row, "plan_node") ? row_text(row, "plan_node") : "not known");
		snprintf(words, sizeof(words), "sample of %s ago:", age);
		print_field("stack", stack && *stack ? words : "not known: it has no sample yet");
		print_field("", stack ? stack : "");
	}
	sqlite3_free(head);
	sqlite3_free(query);
	sqlite3_free(stack);
}

static void print_transaction(sqlite3_stmt *row)
{
	char words[ROW_DURATION];
	char *line = sqlite3_mprintf(
		"%s: %s, thread %s%s%s of process %s, %s: %s statement%s, began with %s",
		row_text(row, "database"), row_duration(row, "age_ns", words), row_text(row, "thread_id"),
		row_has(row, "thread_name") ? " " : "", row_text(row, "thread_name"),
		row_text(row, "process_id"), row_access(row), row_text(row, "statements"),
		row_number(row, "statements") == 1 ? "" : "s",
		row_has(row, "first_query") ? row_text(row, "first_query") : "a statement that is not known");

	if (line) {
		printf("  ");
		terminal_print_words(line, 2, 2);
		putchar('\n');
	}
	sqlite3_free(line);
}

static void print_head(const struct live *live, const struct snapshot *snapshot)
{
	printf("%s: %d process%s, %d quer%s inside SQLite, %d between two rows, %d transaction%s open\n",
	       live->path, snapshot->processes, snapshot->processes == 1 ? "" : "es", snapshot->running,
	       snapshot->running == 1 ? "y" : "ies", snapshot->between, snapshot->transactions,
	       snapshot->transactions == 1 ? "" : "s");
	if (snapshot->changed)
		printf("%" PRIu32 " more began or ended during the reading\n", snapshot->changed);
	if (snapshot->unread)
		printf("%d process%s cannot be read: recorded by another version of queryprof\n",
		       snapshot->unread, snapshot->unread == 1 ? "" : "es");
}

static int print_text(sqlite3 *db, const struct live *live, const struct snapshot *snapshot)
{
	sqlite3_stmt *rows = snapshot_prepare(db, snapshot, sql_live_runs, 0);
	int code = SQLITE_DONE, count = 0;

	print_head(live, snapshot);
	while (rows && (code = sqlite3_step(rows)) == SQLITE_ROW)
		print_run(rows);
	if (!rows || code != SQLITE_DONE)
		complain("dump: %s: %s", live->path, sqlite3_errmsg(db));
	sqlite3_finalize(rows);
	rows = snapshot_prepare(db, snapshot, sql_live_transactions, 0);
	while (rows && sqlite3_step(rows) == SQLITE_ROW) {
		if (count++ == 0)
			printf("\nopen transactions\n");
		print_transaction(rows);
	}
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? COMMAND_FINE : COMMAND_FAILED;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static int print_rows(sqlite3 *db, const char *name, const char *sql, const struct snapshot *snapshot)
{
	const struct output output = { .format = OUTPUT_JSON };
	sqlite3_stmt *rows = snapshot_prepare(db, snapshot, sql, 0);
	int code;

	printf(",\"%s\":", name);
	code = rows ? output_rows(rows, &output) : SQLITE_ERROR;
	if (code != SQLITE_OK)
		complain("dump: %s", sqlite3_errmsg(db));
	sqlite3_finalize(rows);
	return code == SQLITE_OK ? COMMAND_FINE : COMMAND_FAILED;
}

static int print_json(sqlite3 *db, const struct live *live, const struct snapshot *snapshot)
{
	int result;

	printf("{\"file\":");
	json_write_text(stdout, live->path, "");
	printf(",\"timestamp_ns\":%" PRIu64 ",\"processes\":%d,\"unread\":%d,\"changed\":%" PRIu32,
	       snapshot->now_ns, snapshot->processes, snapshot->unread, snapshot->changed);
	result = print_rows(db, "runs", sql_live_runs, snapshot);
	if (!result)
		result = print_rows(db, "transactions", sql_live_transactions, snapshot);
	printf("}\n");
	return result;
}

/* --- the command ------------------------------------------------------------------------------ */

static int run(int argc, char **argv)
{
	struct snapshot snapshot;
	struct live live;
	sqlite3 *db;
	int result = live_open("dump", argv[0], &live), code;

	(void)argc;
	if (result)
		return result;
	db = trace_file_open(live.path);
	if (!db) {
		live_close(&live);
		return COMMAND_FAILED;
	}
	code = snapshot_take(db, &live, &snapshot);
	if (code)
		result = complain("dump: %s", sqlite3_errmsg(db));
	else
		result = format_name && strcmp(format_name, "json") == 0 ? print_json(db, &live, &snapshot)
		                                                         : print_text(db, &live, &snapshot);
	trace_file_close(db);
	live_close(&live);
	return result;
}

const struct command command_dump = {
	.name = "dump",
	.arguments = "[PID|FILE] [OPTION]...",
	.summary = "Shows what a recorded program does at this moment",
	.details =
		"PID is a process that `queryprof record` or `attach` is recording now. FILE is the trace "
		"file of a running recording, and selects all its processes. For each open query, dump "
		"prints the statement, how long it has run, whether its thread is on a processor or what it "
		"waits for, and who holds the lock. Open transactions follow, the oldest first.\n\n"
		"dump reads the memory that the process shares with record. It stops no process and opens "
		"no database. `on CPU` includes threads that are ready to run. The stack and the plan node "
		"are those of the query's newest sample, whose age is printed. Queries that began or ended "
		"during the reading are counted and not shown.\n\n"
		"Only root can read a process of another user.",
	.examples = "  queryprof dump app.trace\n"
		    "  queryprof dump 4321 --format json\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.run = run,
};
