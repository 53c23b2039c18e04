/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --help and the man page, which the build writes with `queryprof --man`. Both use the tables of the
 * commands, so they cannot differ.
 */
#include "cmd/line/help.h"

#include <stdlib.h>
#include <string.h>

#include "queryprof.h"

#define WIDTH 80
#define OPTION_COLUMN 21

static const char summary[] = "where queries spend their time";
static const char description[] =
	"Records what the queries of programs that use SQLite do, and reads the trace files "
	"that queryprof's sampling profiler writes.";

/* Topics that concern all commands: a title for the man page, and paragraphs. */
static const struct topic {
	const char *title;
	const char *text;
} topics[] = {
	{ "files",
	  "Without FILE, a command that reads a trace file reads ./" TRACE_FILE_DEFAULT "; trace and push "
	  "require FILE. pull writes a file of what push sent to ClickHouse." },
	{ "times",
	  "A TIME is UTC: a date and time such as 2026-11-20, '2026-11-20 09:30' or "
	  "2026-11-20T09:30:15.25+01:00; today or yesterday (midnight); now; start or end (when the "
	  "first and the last run of the file began). You may add or subtract a duration, as in "
	  "end-10min. A duration alone, such as 2h, is that long ago. A duration is a number with us, "
	  "ms, s, min, h, d or w." },
	{ "exit status",
	  "0: success. 1: failure (the file cannot be read or written, the SQL is wrong, no query has the "
	  "id). 2: usage error. record returns the status of its command." },
	{ "environment",
	  "COLUMNS: the width of tables; by default that of the terminal, and no limit if the output is not "
	  "a terminal. PAGER: the program that shows output longer than the terminal; less by default. "
	  "NO_COLOR: do not print headings in bold. QUERYPROF_NAME: the setting NAME, for record and the "
	  "programs that it starts. QUERYPROF_DEBUG_PATH: folders with separate debug files; /usr/lib/debug "
	  "by default. DEBUGINFOD_URLS: servers to fetch missing debug files from. DEBUGINFOD_TIMEOUT: "
	  "seconds to wait for a file; 10 by default. XDG_CACHE_HOME: the folder of queryprof-names, the "
	  "cache of names; ~/.cache by default. OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES: the service "
	  "and its other attributes, for push and for export in OTLP. QUERYPROF_PUSH_USER, "
	  "QUERYPROF_PUSH_PASSWORD: name and password for the server of push and pull." },
};
#define TOPICS (sizeof(topics) / sizeof(topics[0]))

/* --- on the terminal ------------------------------------------------------------ */

/* Prints words from column `at` on, with breaks before WIDTH; later lines begin at `indent`. Empty lines are
 * kept. */
static void print_filled(FILE *to, const char *text, int at, int indent)
{
	bool is_first = true;

	while (*text) {
		size_t blank = strspn(text, " \n"), size = strcspn(text + blank, " \n");
		bool is_paragraph = blank > 1 && text[0] == '\n' && text[1] == '\n';
		text += blank;
		if (!size)
			break;
		if (is_paragraph || (!is_first && at + 1 + (int)size > WIDTH)) {
			fprintf(to, "%s\n%*s", is_paragraph ? "\n" : "", indent, "");
			at = indent;
			is_first = true;
		}
		at += fprintf(to, "%s%.*s", is_first ? "" : " ", (int)size, text);
		is_first = false;
		text += size;
	}
	fputc('\n', to);
}

/* "name VALUE" after its dashes, in the man page's fonts if they are given. */
static int print_option_name(FILE *to, const struct command_option *option, const char *dashes,
                             const char *bold, const char *italic, const char *roman)
{
	int size = fprintf(to, "%s%s%s%s", bold, option->name[1] ? dashes : "", dashes, option->name);

	size += fprintf(to, "%s", roman);
	if (option->value)
		size += fprintf(to, " %s%s%s", italic, option->value, roman);
	return size;
}

static void print_option(FILE *to, const struct command_option *option)
{
	int at = 2;

	fputs("  ", to);
	at += print_option_name(to, option, "-", "", "", "");
	if (at + 2 > OPTION_COLUMN) {
		fputc('\n', to);
		at = 0;
	}
	fprintf(to, "%*s", OPTION_COLUMN - at, "");
	print_filled(to, option->help, OPTION_COLUMN, OPTION_COLUMN);
}

static const struct command_option help_option = { .name = "help", .help = "print this text (also -h)" };
static const struct command_option version_option = { .name = "version",
	                                              .help = "print the version (also -V)" };

void help_print(FILE *to)
{
	const struct command *command;

	print_filled(to, description, 0, 0);
	fputs("\nusage: queryprof COMMAND [ARGUMENT]...\n\n", to);
	for (size_t i = 0; (command = command_at(i)); i++)
		fprintf(to, "  %-10s %s\n", command->name, command->summary);
	fputc('\n', to);
	print_option(to, &version_option);
	print_option(to, &(const struct command_option){
				 .name = "help",
				 .help = "print this text, or after a command its help (also "
					 "-h)" });
	for (size_t i = 0; i < TOPICS; i++) {
		int at = fprintf(to, "\n%s: ", topics[i].title) - 1;
		print_filled(to, topics[i].text, at, 2);
	}
}

void help_print_command(const struct command *command, FILE *to)
{
	fprintf(to, "%s.\n\nusage: queryprof %s %s\n", command->summary, command->name, command->arguments);
	if (command->details) {
		fputc('\n', to);
		print_filled(to, command->details, 0, 0);
	}
	if (command->print_details) {
		fputc('\n', to);
		command->print_details(to);
	}
	fputc('\n', to);
	for (const struct command_option *option = command->options; option->name; option++)
		print_option(to, option);
	print_option(to, &help_option);
	if (command->shared) {
		fprintf(to, "\n%s:\n",
		        command->shared_title ? command->shared_title
		                              : "which runs (a TIME: see queryprof --help)");
		for (const struct command_option *option = command->shared; option->name; option++)
			print_option(to, option);
	}
	fprintf(to, "\nexamples:\n%s", command->examples);
}

/* --- the man page ---------------------------------------------------------------- */

#define MAN_DATE "2026-11-29" /* of the texts */

/* Escapes the text, so that troff prints it literally. A line that begins with a dot or a quote would be a
 * request. */
static void print_escaped(FILE *to, const char *text, size_t size, bool is_line_start)
{
	for (size_t i = 0; i < size; i++) {
		if (is_line_start && strchr(".'", text[i]))
			fputs("\\&", to);
		is_line_start = text[i] == '\n';
		switch (text[i]) {
		case '\\': fputs("\\e", to); break;
		case '-': fputs("\\-", to); break;
		case '\'': fputs("\\(aq", to); break;
		default: fputc(text[i], to);
		}
	}
}

static void print_paragraphs(FILE *to, const char *text)
{
	bool is_first = true, is_line_start = true;
	size_t at = 0;

	while (*text) {
		size_t blank = strspn(text, " \n"), size = strcspn(text + blank, " \n");
		bool is_paragraph = !is_first && blank > 1 && text[0] == '\n' && text[1] == '\n';
		text += blank;
		if (!size)
			break;
		is_line_start = is_first || is_paragraph || at + 1 + size > WIDTH - 12; /* room for escapes */
		if (!is_first)
			fputs(is_paragraph ? "\n.PP\n" : is_line_start ? "\n" : " ", to);
		at = is_line_start ? size : at + 1 + size;
		print_escaped(to, text, size, is_line_start);
		is_first = false;
		text += size;
	}
	fputc('\n', to);
}

static void print_literally(FILE *to, const char *lines)
{
	fputs(".PP\n.nf\n.in -2n\n", to); /* the lines are indented */
	print_escaped(to, lines, strlen(lines), true);
	fputs(".in\n.fi\n", to);
}

static void print_manual_options(FILE *to, const struct command_option *option)
{
	for (; option && option->name; option++) {
		fputs(".TP\n", to);
		print_option_name(to, option, "\\-", "\\fB", "\\fI", "\\fR");
		fputc('\n', to);
		print_paragraphs(to, option->help);
	}
}

static void print_manual_command(FILE *to, const struct command *command)
{
	char *lines = NULL;
	size_t size;

	fprintf(to, ".SS queryprof %s ", command->name);
	print_escaped(to, command->arguments, strlen(command->arguments), false);
	fputc('\n', to);
	print_escaped(to, command->summary, strlen(command->summary), true);
	fputs(".\n", to);
	if (command->details) {
		fputs(".PP\n", to);
		print_paragraphs(to, command->details);
	}
	FILE *memory = command->print_details ? open_memstream(&lines, &size) : NULL;
	if (memory) {
		command->print_details(memory);
		fclose(memory);
		print_literally(to, lines);
		free(lines);
	}
	print_manual_options(to, command->options);
	if (command->shared_title)
		print_manual_options(to, command->shared);
	else if (command->shared)
		fputs(".PP\nWhich runs: see\n.BR \"WHICH RUNS\" .\n", to);
	fputs(".PP\nExamples:\n", to);
	print_literally(to, command->examples);
}

static void print_title(FILE *to, const char *title)
{
	fputs(".SH ", to);
	for (; *title; title++)
		fputc(*title >= 'a' && *title <= 'z' ? *title - 'a' + 'A' : *title, to);
	fputc('\n', to);
}

void help_print_manual(FILE *to)
{
	const struct command_option *shared = NULL;
	const struct command *command;

	fprintf(to, ".TH QUERYPROF 1 %s \"queryprof %s\"\n", MAN_DATE, QUERYPROF_VERSION);
	fprintf(to, ".SH NAME\nqueryprof \\- %s\n", summary);
	fputs(".SH SYNOPSIS\n", to);
	for (size_t i = 0; (command = command_at(i)); i++) {
		fprintf(to, "%s.B queryprof %s\n", i ? ".br\n" : "", command->name);
		print_escaped(to, command->arguments, strlen(command->arguments), true);
		fputc('\n', to);
	}
	fputs(".SH DESCRIPTION\n", to);
	print_paragraphs(to, description);
	fputs(".SH COMMANDS\n", to);
	for (size_t i = 0; (command = command_at(i)); i++) {
		print_manual_command(to, command);
		if (!command->shared_title && command->shared)
			shared = command->shared;
	}
	if (shared) {
		print_title(to, "which runs");
		print_manual_options(to, shared);
	}
	for (size_t i = 0; i < TOPICS; i++) {
		print_title(to, topics[i].title);
		print_paragraphs(to, topics[i].text);
	}
	fputs(".SH SEE ALSO\n.BR sqlite3 (1),\n.BR go (1)\n", to);
}
