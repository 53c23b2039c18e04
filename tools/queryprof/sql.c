/*
 * queryprof sql: a shell on a trace file, for people and for scripts. Both run the
 * same statements and the same words that begin with a dot; a script ends at its first
 * error.
 */
#include "command.h"
#include "line_editor.h"

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

struct shell {
	sqlite3 *db;
	struct output output;
	bool is_interactive;
	bool leaves;
	char *sql; /* of a statement that is not complete yet */
	size_t length;
	char *line; /* of a script */
	size_t room;
};

/* --- words instead of SQL ------------------------------------------------------------ */

static int show_tables(struct shell *shell, const char *name)
{
	(void)name;
	return sql_run(shell->db,
	               "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') "
	               "AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name",
	               NULL, &(struct output){ .is_bare = true });
}

static int show_schema(struct shell *shell, const char *name)
{
	const struct sql_parameter parameters[] = { { ":name", name[0] ? name : NULL }, { NULL, NULL } };

	return sql_run(shell->db,
	               "SELECT sql || ';' FROM sqlite_schema "
	               "WHERE sql IS NOT NULL AND (:name IS NULL OR tbl_name LIKE :name)",
	               parameters, &(struct output){ .is_bare = true });
}

static int set_mode(struct shell *shell, const char *name)
{
	for (size_t i = 0; output_format_at(i); i++)
		if (strcmp(output_format_at(i), name) == 0) {
			shell->output.format = output_format_find(name);
			return COMMAND_FINE;
		}
	return complain(".mode %s; expected " OUTPUT_FORMATS, name);
}

static int leave(struct shell *shell, const char *name)
{
	(void)name;
	shell->leaves = true;
	return COMMAND_FINE;
}

static int show_words(struct shell *shell, const char *name);

static const struct word {
	const char *word, *help;
	int (*run)(struct shell *shell, const char *argument);
} words[] = {
	{ ".help", "this list", show_words },
	{ ".tables", "what there is to read", show_tables },
	{ ".schema [NAME]", "with all columns", show_schema },
	{ ".mode FORMAT", OUTPUT_FORMATS, set_mode },
	{ ".quit", "leave; as does the end of input", leave },
	{ ".exit", "the same", leave },
};

static int show_words(struct shell *shell, const char *name)
{
	(void)shell;
	(void)name;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		printf("%-16s %s\n", words[i].word, words[i].help);
	return COMMAND_FINE;
}

static int run_word(struct shell *shell, const char *line)
{
	size_t size = strcspn(line, " \t\r\n");
	const char *start = line + size + strspn(line + size, " \t");
	char *argument = strndup(start, strcspn(start, " \t\r\n;"));
	int result = COMMAND_FAILED;
	bool is_known = false;

	for (size_t i = 0; argument && !is_known && i < sizeof(words) / sizeof(words[0]); i++) {
		is_known = strcspn(words[i].word, " ") == size && memcmp(words[i].word, line, size) == 0;
		if (is_known)
			result = words[i].run(shell, argument);
	}
	if (!is_known)
		complain("there is no %.*s (.help has the list)", (int)size, line);
	free(argument);
	return result;
}

/* --- statements ----------------------------------------------------------------------- */

static sqlite3 *running;

static void interrupt(int signal)
{
	(void)signal;
	sqlite3_interrupt(running); /* may be called in a signal handler */
}

static int run_statement(struct shell *shell)
{
	struct sigaction before, action = { .sa_handler = interrupt, .sa_flags = SA_RESTART };

	if (!shell->is_interactive)
		return sql_run(shell->db, shell->sql, NULL, &shell->output);
	running = shell->db;
	sigaction(SIGINT, &action, &before);
	int result = sql_run(shell->db, shell->sql, NULL, &shell->output);
	sigaction(SIGINT, &before, NULL);
	return result;
}

static bool is_blank(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return *text == 0;
}

/* A line more; runs what is complete. */
static int take_line(struct shell *shell, const char *line)
{
	size_t size = strlen(line);
	int result = COMMAND_FINE;

	if (!shell->length && line[0] == '.')
		return run_word(shell, line);
	char *grown = realloc(shell->sql, shell->length + size + 1);
	if (!grown)
		return complain("out of memory");
	shell->sql = grown;
	memcpy(grown + shell->length, line, size + 1);
	shell->length += size;
	if (!is_blank(shell->sql) && !sqlite3_complete(shell->sql))
		return COMMAND_FINE;
	if (!is_blank(shell->sql))
		result = run_statement(shell);
	shell->length = 0;
	return result;
}

/* NULL: no more, or, with *interrupted, the person wants to begin anew. */
static const char *read_line(struct shell *shell, bool *interrupted)
{
	*interrupted = false;
	if (shell->is_interactive)
		return line_editor_read(shell->length ? "      ...> " : "queryprof> ", interrupted);
	return getline(&shell->line, &shell->room, stdin) < 0 ? NULL : shell->line;
}

static int run_lines(struct shell *shell)
{
	int result = COMMAND_FINE;
	bool interrupted;
	const char *line;

	while (!shell->leaves && (!result || shell->is_interactive)) {
		line = read_line(shell, &interrupted);
		if (interrupted) {
			shell->length = 0;
			putchar('\n');
		} else if (!line) {
			break;
		} else {
			result = take_line(shell, line);
		}
		fflush(stdout);
	}
	if (!shell->is_interactive && ferror(stdin))
		return complain("standard input: cannot be read");
	/* What has no semicolon at its end. */
	if (!result && !shell->leaves && shell->length && !shell->is_interactive)
		result = run_statement(shell);
	return result;
}

static int run_shell(struct shell *shell)
{
	if (!line_editor_open())
		return complain("the terminal cannot be used (queryprof sql FILE - reads what is piped in)");
	puts("SQL on the trace file, each statement ended by a semicolon; .help, .quit");
	fflush(stdout);
	run_lines(shell);
	if (!shell->leaves)
		putchar('\n'); /* the prompt's line is still there */
	line_editor_close();
	return COMMAND_FINE; /* errors were told, and the person went on */
}

static int run(int argc, char **argv)
{
	struct shell shell = { .output.format = output_format_find(format_name) };
	int result;

	shell.db = trace_file_open(argv[0]);
	if (!shell.db)
		return COMMAND_FAILED;
	shell.is_interactive = argc == 1 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (argc > 1 && strcmp(argv[1], "-") != 0)
		result = sql_run(shell.db, argv[1], NULL, &shell.output);
	else
		result = shell.is_interactive ? run_shell(&shell) : run_lines(&shell);
	free(shell.sql);
	free(shell.line);
	trace_file_close(shell.db);
	return result;
}

const struct command command_sql = {
	.name = "sql",
	.arguments = "FILE [SQL]",
	.summary = "Runs SQL on a trace file, with queryprof's functions",
	.details =
		"Without SQL it is read from standard input. On a terminal that is a shell with a history: "
		"statements may have several lines, Ctrl-C cancels one, and .help lists the words that it "
		"knows besides SQL. A script ends at its first error, with exit status 1. "
		"The file is opened for reading only.\n\n"
		"Tables: trace_log, query_log; .tables has all. "
		"Functions: addressToSymbol, addressToLine, demangle, traceToText, flameGraph.",
	.examples = "  queryprof sql app.trace\n"
		    "  queryprof sql app.trace \"SELECT query_id, query FROM query_log\"\n"
		    "  queryprof sql app.trace --format csv < questions.sql > answers.csv\n"
		    "  queryprof sql app.trace \"SELECT sum(weight) AS n,\n"
		    "      demangle(addressToSymbol(trace->>0)) AS symbol\n"
		    "    FROM trace_log GROUP BY symbol ORDER BY n DESC LIMIT 10\"\n",
	.options = options,
	.arguments_min = 1,
	.arguments_max = 2,
	.run = run,
};
