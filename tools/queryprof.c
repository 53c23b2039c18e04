/*
 * The queryprof command: the table of its subcommands, its help, and the command
 * line that all subcommands share.
 */
#include "command.h"

#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "queryprof.h"

static const struct command *const commands[] = {
	&command_queries,
	&command_record,
	&command_report,
	&command_export,
	&command_sql,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

int complain(const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	/* It may quote a file's content, which must not drive the terminal. */
	for (char *at = text; at && *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = ' ';
	fflush(stdout); /* where both go to one place, in the order of events */
	fprintf(stderr, "queryprof: %s\n", text ? text : "out of memory");
	free(text);
	return COMMAND_FAILED;
}

/* --- help --------------------------------------------------------------------- */

static void print_help(FILE *to)
{
	fputs("Where queries spend their time: reads the trace files that queryprof's sampling\n"
	      "profiler writes.\n\n"
	      "usage: queryprof COMMAND [ARGUMENT]...\n\n", to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n  --help     this text; after a command, that command's\n"
	      "  --version\n\n"
	      "exit status: 0 fine, 1 it failed, 2 the command line makes no sense\n", to);
}

static void print_command_help(const struct command *command, FILE *to)
{
	fprintf(to, "%s.\n\nusage: queryprof %s %s\n", command->summary, command->name,
	        command->arguments);
	if (command->details)
		fprintf(to, "\n%s", command->details);
	fputc('\n', to);
	if (command->print_details) {
		command->print_details(to);
		fputc('\n', to);
	}
	for (const struct command_option *option = command->options; option->name; option++) {
		char left[40];
		snprintf(left, sizeof(left), "-%s%s %s", option->name[1] ? "-" : "", option->name,
		         option->value ? option->value : "");
		fprintf(to, "  %-18s %s\n", left, option->help);
	}
	fprintf(to, "  %-18s %s\n\nexamples:\n%s", "--help", "this text", command->examples);
}

/* --- command lines ------------------------------------------------------------ */

static int misuse(const struct command *command, const char *what, const char *about)
{
	complain("%s: %s%s%s (see queryprof %s --help)", command->name, what, about ? " " : "",
	         about ? about : "", command->name);
	return COMMAND_MISUSED;
}

static const struct command_option *find_option(const struct command *command, const char *name,
                                                size_t size)
{
	for (const struct command_option *option = command->options; option->name; option++)
		if (strlen(option->name) == size && memcmp(option->name, name, size) == 0)
			return option;
	return NULL;
}

/* Takes the options out of argv, wherever they stand, and runs the command. */
static int run_command(const struct command *command, int argc, char **argv)
{
	int kept = 0;
	bool options_end = false;

	for (int i = 0; i < argc; i++) {
		const char *word = argv[i];
		bool is_short = word[0] == '-' && word[1] && word[1] != '-' && !word[2];
		if (options_end || (!is_short && strncmp(word, "--", 2) != 0)) {
			options_end |= command->wraps_command;
			argv[kept++] = argv[i];
			continue;
		}
		if (strcmp(word, "--") == 0) {
			options_end = true;
			continue;
		}
		if (strcmp(word, "--help") == 0) {
			print_command_help(command, stdout);
			return COMMAND_FINE;
		}
		const char *equals = strchr(word, '=');
		const char *option_name = word + (is_short ? 1 : 2);
		size_t size = equals ? (size_t)(equals - option_name) : strlen(option_name);
		const struct command_option *option = is_short == (size == 1) ? find_option(command, option_name, size) : NULL;
		if (!option)
			return misuse(command, "there is no option", word);
		if (!option->value && equals)
			return misuse(command, "no value belongs to", word);
		if (option->value && !equals && ++i == argc)
			return misuse(command, "a value is missing after", word);
		const char *value = !option->value ? "1" : equals ? equals + 1 : argv[i];
		int result = COMMAND_FINE;
		if (option->to)
			*option->to = value;
		else
			result = command->take(option, value);
		if (result)
			return result;
	}
	if (kept < command->arguments_min)
		return misuse(command, "usage:", command->arguments);
	if (kept > command->arguments_max)
		return misuse(command, "one argument too many:", argv[command->arguments_max]);
	return command->run(kept, argv);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--version") == 0) {
		puts("queryprof " QUERYPROF_VERSION);
		return COMMAND_FINE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) {
		const struct command *about = argc > 2 ? find_command(argv[2]) : NULL;
		if (about)
			print_command_help(about, stdout);
		else
			print_help(stdout);
		return COMMAND_FINE;
	}
	const struct command *command = find_command(name);
	if (command)
		return run_command(command, argc - 2, argv + 2);
	if (argc > 1)
		complain("there is no command %s", name);
	print_help(stderr);
	return COMMAND_MISUSED;
}

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, ""); /* how wide the terminal shows a character */
	int result = run(argc, argv);
	/* What could not be written was no success. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		complain("standard output: cannot be written");
		return COMMAND_FAILED;
	}
	return result;
}
