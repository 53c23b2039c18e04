/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/mcp/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cmd/file/selection.h"
#include "cmd/line/options.h"
#include "cmd/mcp/folders.h"

enum kind { TEXT, NUMBER, FILE_NAME, DATABASE_NAME };

struct parameter {
	const char *name;
	const char *option; /* NULL: an argument of the command, in this order */
	enum kind kind;
	bool is_required;
	const char *help;
};

#define ARGUMENTS_MAX 6

struct tool {
	const char *name, *command; /* command NULL: lists the files */
	const char *help;
	const char *always[3]; /* options */
	int seconds;           /* 0: TOOL_SECONDS */
	struct parameter parameters[ARGUMENTS_MAX];
};

#define A_FILE                                                                                               \
	{                                                                                                    \
		"file", NULL, FILE_NAME, false, "the trace file (see files); the newest one if not given"    \
	}
#define A_DATABASE(option)                                                                                   \
	{                                                                                                    \
		"database", option, DATABASE_NAME, true,                                                     \
			"the database file, in the server's folders, which no process has open"              \
	}
#define A_STATEMENT(required)                                                                                \
	{                                                                                                    \
		"statement", "--statement", TEXT, required,                                                  \
			"the id of a statement, such as cff636ae, from findings or top_statements"           \
	}
#define A_LIMIT(text)                                                                                        \
	{                                                                                                    \
		"limit", "--limit", NUMBER, false, text                                                      \
	}

static const struct tool tools[] = {
	{ "files",
	  NULL,
	  "Lists the trace files (recordings of programs that use SQLite), the newest first.",
	  { 0 },
	  0,
	  { { 0 } } },
	{ "findings",
	  "findings",
	  "What costs most in the queries of a recorded program, and what would change it: share of the time "
	  "in SQLite, statement with its id, line of the program, evidence, cure as SQL or as a sentence, "
	  "and how sure that is. Begin here.",
	  { 0 },
	  0,
	  { A_FILE, A_STATEMENT(false), A_LIMIT("findings at most, 3 if not given") } },
	{ "top_statements",
	  "queries",
	  "The statements that took most time: share, wall and CPU time of all runs, runs, mean time of a "
	  "run, 99th percentile, rows, id, notes with causes, text.",
	  { 0 },
	  0,
	  { A_FILE,
	    { "like", "--like", TEXT, false, "only statements with this text" },
	    { "by", "--by", TEXT, false, "the order: wall (default), cpu, off (waiting), samples or start" },
	    A_LIMIT("statements at most, 8 if not given") } },
	{ "plan",
	  "plan",
	  "The plan of a statement as a tree: the share of the time, the time with its standard error, and "
	  "the rows visited and returned of each node.",
	  { "--limit", "1" },
	  0,
	  { A_FILE, A_STATEMENT(true) } },
	{ "locks",
	  "locks",
	  "Which statements kept others waiting for locks of databases: how long, how often, and what the "
	  "holder did meanwhile.",
	  { 0 },
	  0,
	  { A_FILE } },
	{ "wal",
	  "wal",
	  "How large write-ahead logs (-wal files) grew, which statements filled them, which transaction "
	  "kept them from being reset, and which statements paid for checkpoints.",
	  { 0 },
	  0,
	  { A_FILE } },
	{ "pages",
	  "pages",
	  "For which tables and indexes the storage is read and written: megabytes to the WAL and the "
	  "database file, how often each page was written, by which statements, and indexes that no recorded "
	  "statement reads.",
	  { "--by", "btree" },
	  0,
	  { A_FILE,
	    { "table", "--table", TEXT, false, "only this table and its indexes, or this index" },
	    { "by", "--by", TEXT, false, "what a row is: btree (default), statement, index or time" },
	    A_LIMIT("rows at most, 10 if not given") } },
	{ "callers",
	  "queries",
	  "The lines of the program that run statements, with the statement that takes most of their time.",
	  { "--by", "caller" },
	  0,
	  { A_FILE, A_STATEMENT(false), A_LIMIT("lines at most, 8 if not given") } },
	{ "diff",
	  "diff",
	  "Compares two recordings: the mean time of a run of each statement before and after, and whether "
	  "chance can explain the difference (noise ~). Use it to prove a change.",
	  { 0 },
	  0,
	  { { "before", NULL, FILE_NAME, true, "the trace file from before the change" },
	    { "after", NULL, FILE_NAME, true, "the trace file from after it" },
	    A_LIMIT("statements and functions at most, 5 if not given") } },
	{ "sql",
	  "sql",
	  "Runs SQL that only reads on a trace file; the answer is CSV, cut after 2,000 characters. Views: "
	  "top_queries, query_log (runs), statement_stats (all runs, counted), trace_log (samples), "
	  "plan_times, lock_waits, bursts. PRAGMA table_info(NAME) lists columns, whose names have the "
	  "units.",
	  { "--format", "csv", "--guarded" },
	  0,
	  { A_FILE, { "sql", NULL, TEXT, true, "the statement" } } },
	{ "advise",
	  "advise",
	  "Measures which indexes pay: runs the recorded statements on a private copy of their database, "
	  "with "
	  "and without each index. Answers with CREATE INDEX, the time saved of all recorded runs, and what "
	  "it costs, or with `no index helps`. Takes up to half a minute.",
	  { "--for", "12s" },
	  40,
	  { A_FILE, A_DATABASE("--database"), A_LIMIT("statements at most, 8 if not given") } },
	{ "analyze",
	  "analyze",
	  "Runs a statement again and again on a private copy of a database: CPU time of a run, and its plan "
	  "with measured times. With against or pragma, compares two ways to run it: faster, slower or no "
	  "difference, and whether they return the same rows. Write values into the statement, because a ? "
	  "is NULL. Takes up to half a minute.",
	  { "--for", "8s" },
	  40,
	  { A_DATABASE(NULL),
	    { "sql", NULL, TEXT, true, "the statement" },
	    { "against", "--against", TEXT, false, "another way to write it" },
	    { "pragma", "--pragma", TEXT, false,
	      "a setting of the connection to compare with, such as cache_size=-65536" } } },
};

const struct tool *tools_find(const char *name)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
		if (strcmp(tools[i].name, name) == 0)
			return &tools[i];
	return NULL;
}

/* --- the list ------------------------------------------------------------------------------------ */

static void write_schema(const struct tool *tool, FILE *to)
{
	const char *comma = "";

	fputs("{\"type\":\"object\",\"properties\":{", to);
	for (const struct parameter *one = tool->parameters; one->name; one++) {
		fprintf(to,
		        "%s\"%s\":{\"type\":\"%s\",%s\"description\":", one == tool->parameters ? "" : ",",
		        one->name, one->kind == NUMBER ? "integer" : "string",
		        one->kind == NUMBER ? "\"minimum\":1," : "");
		json_write_text(to, one->help, "");
		putc('}', to);
	}
	fputs("},\"required\":[", to);
	for (const struct parameter *one = tool->parameters; one->name; one++)
		if (one->is_required) {
			fprintf(to, "%s\"%s\"", comma, one->name);
			comma = ",";
		}
	fputs("],\"additionalProperties\":false}", to);
}

void tools_write_list(FILE *to)
{
	putc('[', to);
	for (const struct tool *tool = tools; tool < tools + sizeof(tools) / sizeof(*tools); tool++) {
		fprintf(to, "%s{\"name\":\"%s\",\"description\":", tool == tools ? "" : ",", tool->name);
		json_write_text(to, tool->help, "");
		fputs(",\"inputSchema\":", to);
		write_schema(tool, to);
		fputs(",\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}", to);
	}
	putc(']', to);
}

/* --- arguments ------------------------------------------------------------------------------------- */

struct call {
	const struct tool *tool;
	char *values[ARGUMENTS_MAX]; /* malloc'ed; NULL: not given */
};

/* With this default, an answer fits its limit. */
static const char *limit_of(const struct tool *tool)
{
	return strcmp(tool->name, "findings") == 0 ? "3" : strcmp(tool->name, "diff") == 0 ? "5" : "8";
}

static const char *type_of(enum kind kind)
{
	return kind == NUMBER ? "integer" : "text";
}

static bool take_argument(struct call *call, sqlite3_stmt *row, FILE *to)
{
	const char *name = (const char *)sqlite3_column_text(row, 0),
		   *type = (const char *)sqlite3_column_text(row, 1),
		   *value = (const char *)sqlite3_column_text(row, 2);
	const struct parameter *one = call->tool->parameters;

	while (one->name && strcmp(one->name, name ? name : "") != 0)
		one++;
	if (!one->name) {
		fprintf(to, "%s has no argument %s; it has", call->tool->name,
		        name ? name : "without a name");
		for (one = call->tool->parameters; one->name; one++)
			fprintf(to, "%s %s", one == call->tool->parameters ? "" : ",", one->name);
		fputs(call->tool->parameters->name ? "\n" : " none\n", to);
		return false;
	}
	if (!value || strcmp(type, type_of(one->kind)) != 0 ||
	    strlen(value) != (size_t)sqlite3_column_bytes(row, 2) ||
	    (one->kind == NUMBER && sqlite3_column_int64(row, 2) < 1)) {
		fprintf(to, "%s: %s is %s; expected %s\n", call->tool->name, name,
		        value && *value && strlen(value) < 80 ? value : type,
		        one->kind == NUMBER ? "a whole number, at least 1" : "a string");
		return false;
	}
	char **to_value = &call->values[one - call->tool->parameters];

	free(*to_value);
	*to_value = text_format("%s", value);
	return *to_value != NULL;
}

/* Checks that the client gave every required argument, and turns files into paths. */
static bool complete(struct call *call, FILE *to)
{
	for (int i = 0; call->tool->parameters[i].name; i++) {
		const struct parameter *one = &call->tool->parameters[i];
		char *given = call->values[i];

		if (one->is_required && !given) {
			fprintf(to, "%s: the argument %s is missing: %s\n", call->tool->name, one->name,
			        one->help);
			return false;
		}
		if (one->kind != FILE_NAME && one->kind != DATABASE_NAME)
			continue;
		call->values[i] =
			one->kind == FILE_NAME ? folders_find(given, to) : folders_find_database(given, to);
		if (!given && call->values[i])
			fprintf(to, "%s:\n", call->values[i]);
		free(given);
		if (!call->values[i])
			return false;
	}
	return true;
}

/* The words of the command line, and a NULL. A client's text is never an option: it follows an option's name,
 * or the end of the options. */
static int make_words(const struct call *call, char **words)
{
	const struct tool *tool = call->tool;
	int count = 0;

	for (int i = 0; i < 3 && tool->always[i]; i++)
		words[count++] = (char *)tool->always[i];
	for (int i = 0; tool->parameters[i].name; i++) {
		const struct parameter *one = &tool->parameters[i];
		const char *value = call->values[i];

		if (!value && one->kind == NUMBER)
			value = limit_of(tool);
		if (!one->option || !value)
			continue;
		words[count++] = (char *)one->option;
		words[count++] = (char *)value;
	}
	words[count++] = (char *)"--";
	for (int i = 0; tool->parameters[i].name; i++)
		if (!tool->parameters[i].option)
			words[count++] = call->values[i];
	words[count] = NULL;
	return count;
}

/* --- the child --------------------------------------------------------------------------------------- */

#define OUTPUT_MAX 65536

static _Noreturn void run_child(const struct tool *tool, int output, int count, char **words)
{
	const struct command *command = command_find(tool->command);
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool wants_help = false;
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
	    dup2(output, STDERR_FILENO) < 0)
		_exit(COMMAND_FAILED);
	setenv("COLUMNS", "150", 1);
	setenv("NO_COLOR", "1", 1);
	setlocale(LC_CTYPE, "C.UTF-8"); /* JSON is UTF-8, whatever the locale is */
	result = options_read(command, &count, words, &wants_help);
	if (!result)
		result = command_run(command, count, words);
	fflush(stdout);
	_exit(result);
}

/* Reads the child's output until it has ended or has printed more than is ever shown. False: its time is
 * over. */
static bool read_output(int input, int seconds, char *text, size_t *size)
{
	const uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)seconds * NS_PER_S;
	struct pollfd wait = { .fd = input, .events = POLLIN };
	ssize_t got = 1;

	while (got > 0 && *size < OUTPUT_MAX) {
		const uint64_t now = clock_ns(CLOCK_MONOTONIC);
		const int ready = now < end ? poll(&wait, 1, (int)((end - now) / 1000000)) : 0;

		if (!ready)
			return false;
		got = ready < 0 ? -1 : read(input, text + *size, OUTPUT_MAX - *size);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			*size += (size_t)got;
	}
	return true;
}

/* Writes the lines that fit, without trailing blanks, and a note if lines were left out. */
static void write_lines(const char *text, size_t size, FILE *to)
{
	static const char more[] = "[cut: ask for less with limit, statement, like, or SQL]\n";
	const size_t room = TOOL_CHARACTERS - sizeof(more);
	size_t used = 0;

	for (const char *end = text + size; text < end;) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = newline ? (size_t)(newline - text) : (size_t)(end - text), count = 0;
		const char *next = text + length + (newline != NULL);

		while (length && text[length - 1] == ' ')
			length--;
		for (size_t i = 0; i < length; i++)
			count += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (used + count + 1 > room) {
			if (!used) { /* a single line, such as a long value */
				fwrite(text, 1, text_cut(text, room), to);
				putc('\n', to);
			}
			fputs(more, to);
			return;
		}
		used += count + 1;
		fwrite(text, 1, length, to);
		putc('\n', to);
		text = next;
	}
}

static bool run_tool(const struct tool *tool, int count, char **words, FILE *to)
{
	char *text = malloc(OUTPUT_MAX);
	const int seconds = tool->seconds ? tool->seconds : TOOL_SECONDS;
	size_t size = 0;
	int ends[2], status = 0;

	if (!text || pipe2(ends, O_CLOEXEC)) {
		free(text);
		fputs("out of memory or descriptors\n", to);
		return false;
	}
	const pid_t child = fork();

	if (child == 0)
		run_child(tool, ends[1], count, words);
	close(ends[1]);
	const bool is_whole = child > 0 && read_output(ends[0], seconds, text, &size);

	close(ends[0]);
	if (child > 0) {
		if (!is_whole || size == OUTPUT_MAX)
			kill(child, SIGKILL);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (!is_whole && child > 0)
		fprintf(to, "%s: no answer within %d s; select less\n", tool->name, seconds);
	else if (child < 0)
		fprintf(to, "%s: %s\n", tool->name, strerror(errno));
	else if (!size)
		fprintf(to, WIFSIGNALED(status) ? "%s: signal %d ended it\n" : "%s: nothing\n", tool->name,
		        WTERMSIG(status));
	else
		fwrite(text, 1, size, to);
	free(text);
	return is_whole && (size == OUTPUT_MAX || (WIFEXITED(status) && WEXITSTATUS(status) == COMMAND_FINE));
}

static bool answer(struct call *call, sqlite3_stmt *arguments, FILE *to)
{
	char *words[3 + 2 * ARGUMENTS_MAX + 2];
	bool is_fine = true;

	while (is_fine && sqlite3_step(arguments) == SQLITE_ROW)
		is_fine = take_argument(call, arguments, to);
	is_fine = is_fine && complete(call, to);
	if (is_fine && call->tool->command)
		return run_tool(call->tool, make_words(call, words), words, to);
	if (is_fine)
		folders_list(to);
	return is_fine;
}

bool tools_call(const struct tool *tool, sqlite3_stmt *arguments, FILE *to)
{
	struct call call = { .tool = tool };
	char *text = NULL;
	size_t size = 0;
	FILE *whole = open_memstream(&text, &size);
	const bool is_fine = answer(&call, arguments, whole);

	fclose(whole);
	write_lines(text, size, to);
	free(text);
	for (int i = 0; i < ARGUMENTS_MAX; i++)
		free(call.values[i]);
	return !is_fine;
}
