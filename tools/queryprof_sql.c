/*
 * queryprof sql: a shell on a trace file.
 */
#include "command.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *format_name;

static const struct command_option options[] = {
	OUTPUT_FORMAT_OPTION(&format_name),
	{ 0 },
};

static sqlite3 *shell_db;

static void interrupt(int signal)
{
	(void)signal;
	sqlite3_interrupt(shell_db); /* may be called in a signal handler */
}

static bool is_blank(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return *text == 0;
}

/* What a person types instead of SQL; false: it is SQL. */
static bool run_word(sqlite3 *db, const char *line, const struct output *output, bool *leave)
{
	static const struct {
		const char *word, *sql;
	} words[] = {
		{ ".help", "SELECT * FROM (VALUES ('.tables', 'what there is to read'), "
		           "('.schema', 'with all columns'), ('.quit', 'or end of input'))" },
		{ ".tables", "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') "
		             "AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name" },
		{ ".schema", "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL" },
	};
	size_t size = strcspn(line, " \t\r\n");
	struct output bare = *output;

	if (line[0] != '.')
		return false;
	*leave = size == 5 && (memcmp(line, ".quit", 5) == 0 || memcmp(line, ".exit", 5) == 0);
	if (*leave)
		return true;
	bare.is_bare = true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == size && memcmp(words[i].word, line, size) == 0) {
			sql_run(db, words[i].sql, NULL, &bare);
			return true;
		}
	complain("there is no %.*s (.help has the list)", (int)size, line);
	return true;
}

/* Statements typed one after the other; errors do not end it. */
static int run_shell(sqlite3 *db, const struct output *output)
{
	char *line = NULL, *sql = NULL;
	size_t room = 0, length = 0;
	bool leave = false;
	ssize_t got;

	shell_db = db;
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
	sigaction(SIGINT, &action, NULL);
	puts("SQL on the trace file, each statement ended by a semicolon; .help, .quit");
	for (;;) {
		fputs(length ? "      ...> " : "queryprof> ", stdout);
		fflush(stdout);
		got = getline(&line, &room, stdin);
		if (got < 0)
			break;
		if (!length && run_word(db, line, output, &leave)) {
			if (leave)
				break;
			continue;
		}
		char *grown = realloc(sql, length + (size_t)got + 1);
		if (!grown)
			break;
		sql = grown;
		memcpy(sql + length, line, (size_t)got + 1);
		length += (size_t)got;
		if (is_blank(sql)) {
			length = 0;
		} else if (sqlite3_complete(sql)) {
			sql_run(db, sql, NULL, output);
			length = 0;
		}
	}
	if (!leave)
		putchar('\n');
	free(line);
	free(sql);
	return COMMAND_FINE;
}

static char *read_all(FILE *from)
{
	char *text = NULL;
	size_t size = 0;

	if (getdelim(&text, &size, 0, from) < 0 && (ferror(from) || !text)) {
		free(text);
		return ferror(from) ? NULL : strdup("");
	}
	return text;
}

static int run(int argc, char **argv)
{
	const struct output output = { .format = output_format_find(format_name) };
	int result;

	sqlite3 *db = trace_file_open(argv[0]);
	if (!db)
		return COMMAND_FAILED;
	if (argc > 1 && strcmp(argv[1], "-") != 0) {
		result = sql_run(db, argv[1], NULL, &output);
	} else if (argc == 1 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
		result = run_shell(db, &output);
	} else {
		char *sql = read_all(stdin);
		result = sql ? sql_run(db, sql, NULL, &output) : complain("standard input: cannot be read");
		free(sql);
	}
	trace_file_close(db);
	return result;
}

const struct command command_sql = {
	.name = "sql",
	.arguments = "FILE [SQL]",
	.summary = "Runs SQL on a trace file, with queryprof's functions",
	.details =
		"Without SQL, or with -, it is read from standard input; on a terminal, statement "
		"by statement. The file is opened for reading only. Tables: trace_log, query_log. "
		"Functions: addressToSymbol, addressToLine, demangle, traceToText.",
	.examples =
		"  queryprof sql app.trace \"SELECT query_id, query FROM query_log\"\n"
		"  queryprof sql app.trace --format csv < sql/queries.sql > queries.csv\n"
		"  queryprof sql app.trace \"SELECT sum(weight) AS n,\n"
		"      demangle(addressToSymbol(trace->>0)) AS symbol\n"
		"    FROM trace_log GROUP BY symbol ORDER BY n DESC LIMIT 10\"\n",
	.options = options,
	.arguments_min = 1,
	.arguments_max = 2,
	.run = run,
};
