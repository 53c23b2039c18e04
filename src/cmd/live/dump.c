/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof dump: what the recorded processes do at this moment, or a process that is not recorded.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/file/trace_file.h"
#include "cmd/file/words.h"
#include "cmd/line/command.h"
#include "cmd/live/processes.h"
#include "cmd/live/row.h"
#include "cmd/live/snapshot.h"
#include "cmd/live/unrecorded.h"
#include "cmd/ui/output.h"
#include "cmd/ui/terminal.h"
#include "sql_live_runs.h"
#include "sql_live_transactions.h"
#include "sql_live_unrecorded_locks.h"
#include "sql_live_unrecorded_outside.h"
#include "sql_live_unrecorded_runs.h"

static const char *format_name;

static const char *format_at(size_t index)
{
	static const char *const names[] = { "text", "json" };

	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

static const struct command_option options[] = {
	COMMAND_WORD("format", "FORMAT", &format_name, "text or json; text if not given", format_at),
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

/* Takes ownership of the line. */
static void print_line(char *line)
{
	if (line) {
		printf("  ");
		terminal_print_words(line, 2, 2);
		putchar('\n');
	}
	sqlite3_free(line);
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

/* Describes a statement, or the thread's work without one. */
static void print_statement(sqlite3_stmt *row, const char *query)
{
	char *words = NULL;

	if (*query)
		words = sqlite3_mprintf("%s%s", query, row_number(row, "is_cut") ? "..." : "");
	else if (!row_has(row, "function") || strcmp(row_text(row, "function"), "sqlite3_step") == 0)
		words = sqlite3_mprintf("a statement (its text is not known)");
	else
		words = sqlite3_mprintf("none: the thread is in %s()", row_text(row, "function"));
	print_field("statement", words ? words : "");
	sqlite3_free(words);
}

/* The holder of the lock that a run waits for. */
static const char *holder_of(sqlite3_stmt *row, char words[ROW_WORDS])
{
	if (row_has(row, "function") && strcmp(row_text(row, "wait_cause"), "lock") == 0)
		return row_has(row, "holders") ? row_text(row, "holders")
		                               : "no other process has a lock now that it could wait for";
	return row_holder(row, words);
}

/* As seen from outside. */
static void print_native_stack(sqlite3_stmt *row, const char *stack)
{
	print_field("stack", *stack ? stack : "not known");
	if (row_number(row, "stack_is_truncated"))
		print_field("", "... (the rest cannot be read)");
}

static void print_stack(sqlite3_stmt *row, const char *stack)
{
	char words[ROW_WORDS], age[ROW_DURATION];

	if (row_has(row, "sample_age_ns")) {
		row_duration(row, "sample_age_ns", age);
		snprintf(words, sizeof(words), "sample of %s ago:", age);
		print_field("stack", words);
		print_field("", stack);
	} else if (row_has(row, "function")) {
		print_native_stack(row, stack);
	} else {
		print_field("stack", "not known: it has no sample yet");
	}
}

/* A line that begins with the thread; `since`: how long it has done this. */
static void print_thread(sqlite3_stmt *row, const char *since)
{
	char words[ROW_WORDS];
	char *head = sqlite3_mprintf("thread %s%s%s of process %s (%s): %s%s", row_text(row, "thread_id"),
	                             row_has(row, "thread_name") ? " " : "", row_text(row, "thread_name"),
	                             row_text(row, "process_id"), row_text(row, "program"), since,
	                             row_doing(row, words));

	if (head) {
		putchar('\n');
		terminal_print(head, strlen(head), 0, INT_MAX);
		putchar('\n');
	}
	sqlite3_free(head);
}

static void print_run(sqlite3_stmt *row)
{
	char words[ROW_WORDS], age[ROW_DURATION];
	char *query = in_one_line(row_text(row, "query"), " "),
	     *stack = in_one_line(row_text(row, "stack"), " < ");

	snprintf(words, sizeof(words), "%s, ",
	         row_has(row, "elapsed_ns") ? row_duration(row, "elapsed_ns", age)
	                                    : "running since before this look");
	print_thread(row, words);
	print_statement(row, query ? query : "");
	print_field("database", row_text(row, "database"));
	print_field("caller", row_text(row, "caller"));
	print_field("holder", holder_of(row, words));
	if (row_number(row, "is_running")) {
		if (!row_has(row, "function"))
			print_field("plan node",
			            row_has(row, "plan_node") ? row_text(row, "plan_node") : "not known");
		print_stack(row, stack ? stack : "");
	}
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

	print_line(line);
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

/* --- a process that is not recorded ------------------------------------------------------------ */

static void print_unrecorded_head(const struct unrecorded *unrecorded)
{
	const uint32_t seen = unrecorded->threads - unrecorded->unseen;
	char longest[ROW_DURATION];

	printf("process %d (%s) is not recorded", (int)unrecorded->process, unrecorded->program);
	if (!unrecorded->sentence[0]) {
		words_duration((double)unrecorded->stopped_ns, longest, sizeof(longest));
		printf(": %" PRIu32 " thread%s inside SQLite, %" PRIu32 " outside; the longest stop was %s",
		       unrecorded->inside, unrecorded->inside == 1 ? "" : "s", seen - unrecorded->inside,
		       longest);
	}
	putchar('\n');
	if (unrecorded->unseen)
		printf("%" PRIu32 " thread%s could not be stopped, as %d (%s)\n", unrecorded->unseen,
		       unrecorded->unseen == 1 ? "" : "s", (int)unrecorded->unseen_thread,
		       unrecorded->unseen_wait[0] ? unrecorded->unseen_wait : "not known why");
	if (unrecorded->nameless[0])
		printf("%s contains a SQLite without names of its functions: its statements cannot be seen\n",
		       unrecorded->nameless);
	else if (!unrecorded->has_sqlite && !unrecorded->sentence[0])
		printf("it has no SQLite\n");
	if (unrecorded->inside)
		printf("How long a query runs already is not known from outside. `queryprof attach %d` "
		       "measures those that begin from then on.\n",
		       (int)unrecorded->process);
}

static void print_outside(sqlite3_stmt *row)
{
	char *stack = in_one_line(row_text(row, "stack"), " < ");

	print_thread(row, "outside SQLite, ");
	print_field("locks", row_text(row, "locks"));
	print_native_stack(row, stack ? stack : "");
	sqlite3_free(stack);
}

static void print_lock(sqlite3_stmt *row)
{
	char *line =
		sqlite3_mprintf("%s (%s): %s%s%s%s%s%s%s", row_text(row, "database"),
	                        row_number(row, "is_wal") ? "WAL" : "no WAL",
	                        row_has(row, "lock") ? row_text(row, "lock") : "no lock",
	                        !row_has(row, "lock") || row_number(row, "is_exclusive") ? "" : " (shared)",
	                        !row_has(row, "lock")        ? ""
	                        : row_has(row, "process_id") ? ", process "
	                                                     : ", a process that is not known",
	                        row_text(row, "process_id"), row_has(row, "program") ? " (" : "",
	                        row_text(row, "program"), row_has(row, "program") ? ")" : "");

	print_line(line);
}

/* Calls `print` for each row. */
static int print_each(sqlite3 *db, const char *sql, const char *title, void (*print)(sqlite3_stmt *row))
{
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &rows, NULL), count = 0;

	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		if (count++ == 0)
			printf("%s", title);
		print(rows);
		code = SQLITE_OK;
	}
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? COMMAND_FINE : complain("dump: %s", sqlite3_errmsg(db));
}

static int print_unrecorded(const struct unrecorded *unrecorded)
{
	int result;

	print_unrecorded_head(unrecorded);
	result = print_each(unrecorded->db, sql_live_unrecorded_runs, "", print_run);
	if (!result)
		result = print_each(
			unrecorded->db, sql_live_unrecorded_outside,
			"\nThe process has locks that exclude others. Which of its threads took them is not "
			"known.\n",
			print_outside);
	if (!result)
		result = print_each(unrecorded->db, sql_live_unrecorded_locks,
		                    "\nopen databases, and who has locks of them\n", print_lock);
	return result;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static int print_rows(const char *name, sqlite3_stmt *rows)
{
	const struct output output = { .format = OUTPUT_JSON };
	int code;

	printf(",\"%s\":", name);
	code = rows ? output_rows(rows, &output) : SQLITE_ERROR;
	if (code != SQLITE_OK)
		complain("dump: %s", rows ? sqlite3_errmsg(sqlite3_db_handle(rows)) : "no rows");
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
	result = print_rows("runs", snapshot_prepare(db, snapshot, sql_live_runs, 0));
	if (!result)
		result = print_rows("transactions", snapshot_prepare(db, snapshot, sql_live_transactions, 0));
	printf("}\n");
	return result;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *rows = NULL;

	return sqlite3_prepare_v2(db, sql, -1, &rows, NULL) == SQLITE_OK ? rows : NULL;
}

static int print_unrecorded_json(const struct unrecorded *unrecorded)
{
	int result;

	printf("{\"file\":null,\"timestamp_ns\":%" PRIu64 ",\"processes\":0,\"process_id\":%d,\"program\":",
	       unrecorded->now_ns, (int)unrecorded->process);
	json_write_text(stdout, unrecorded->program, "");
	printf(",\"threads\":%" PRIu32 ",\"threads_inside\":%" PRIu32 ",\"threads_unseen\":%" PRIu32
	       ",\"stopped_ns\":%" PRIu64 ",\"refusal\":",
	       unrecorded->threads, unrecorded->inside, unrecorded->unseen, unrecorded->stopped_ns);
	if (unrecorded->sentence[0])
		json_write_text(stdout, unrecorded->sentence, "");
	else
		printf("null");
	result = print_rows("runs", prepare(unrecorded->db, sql_live_unrecorded_runs));
	if (!result)
		result = print_rows("outside", prepare(unrecorded->db, sql_live_unrecorded_outside));
	if (!result)
		result = print_rows("databases", prepare(unrecorded->db, sql_live_unrecorded_locks));
	printf("}\n");
	return result;
}

/* --- the command ------------------------------------------------------------------------------ */

static bool wants_json(void)
{
	return format_name && strcmp(format_name, "json") == 0;
}

static int dump_unrecorded(pid_t process)
{
	struct unrecorded unrecorded;
	const int code = unrecorded_take(&unrecorded, process);
	int result = COMMAND_FINE;

	if (code)
		result = complain("dump: process %d: %s", (int)process, sqlite3_errstr(code));
	else if (!unrecorded.is_refused)
		result = wants_json() ? print_unrecorded_json(&unrecorded) : print_unrecorded(&unrecorded);
	if (!code && unrecorded.sentence[0])
		result = complain("dump: the threads of process %d (%s) cannot be looked at: %s",
		                  (int)process, unrecorded.program, unrecorded.sentence);
	unrecorded_free(&unrecorded);
	return result;
}

static int run(int argc, char **argv)
{
	struct snapshot snapshot;
	struct live live;
	pid_t process;
	sqlite3 *db;
	int result = live_open("dump", argv[0], &live, &process), code;

	(void)argc;
	if (result)
		return result;
	if (process)
		return dump_unrecorded(process);
	db = trace_file_open(live.path);
	if (!db) {
		live_close(&live);
		return COMMAND_FAILED;
	}
	code = snapshot_take(db, &live, &snapshot);
	if (code)
		result = complain("dump: %s", sqlite3_errmsg(db));
	else
		result = wants_json() ? print_json(db, &live, &snapshot) : print_text(db, &live, &snapshot);
	trace_file_close(db);
	live_close(&live);
	return result;
}

const struct command command_dump = {
	.name = "dump",
	.arguments = "[PID|FILE] [OPTION]...",
	.summary = "Shows what a program does with SQLite at this moment",
	.details =
		"PID is any process. FILE is the trace file of a running recording, and selects all its "
		"processes.\n\n"
		"Of processes that `queryprof record` or `attach` is recording now, dump prints for each "
		"open query the statement, how long it has run, whether its thread is on a processor or what "
		"it waits for, and who holds the lock. Open transactions follow, the oldest first. dump "
		"reads the memory that the process shares with record. It stops no process and opens no "
		"database. `on CPU` includes threads that are ready to run. The stack and the plan node are "
		"those of the query's newest sample, whose age is printed. Queries that began or ended "
		"during the reading are counted and not shown.\n\n"
		"Of any other process, dump prints for each thread inside SQLite the statement, what the "
		"thread waits for, and its stack. How long the statement has run is not known. If the "
		"process has "
		"a lock that excludes others, the stacks of its other threads follow. The databases "
		"that the process has open follow, with the locks of all processes on them. dump loads, "
		"calls and writes nothing in the process. It stops each thread by ptrace, without a signal, "
		"while it copies the stack. It needs x86-64, libdw, and a SQLite with the names of its "
		"functions.\n\n"
		"Only root can read a process of another user.",
	.examples = "  queryprof dump app.trace\n"
		    "  queryprof dump 4321 --format json\n"
		    "  queryprof dump $(pidof -s server)\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.run = run,
};
