/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/line/options.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/line/nearest.h"

static int misuse(const struct command *command, const char *what, const char *about)
{
	complain("%s: %s%s%s (see queryprof %s --help)", command->name, what, about ? " " : "",
	         about ? about : "", command->name);
	return COMMAND_MISUSED;
}

const struct command_option *options_find(const struct command *command, const char *name, size_t size)
{
	const struct command_option *const tables[] = { command->options, command->shared };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct command_option *option = tables[i]; option && option->name; option++)
			if (strlen(option->name) == size && memcmp(option->name, name, size) == 0)
				return option;
	return NULL;
}

static int complain_of_option(const struct command *command, const char *word, const char *name, size_t size)
{
	char given[NEAREST_SIZE], what[NEAREST_SIZE + 40] = "";
	struct nearest nearest = { .word = given };
	const struct command_option *const tables[] = { command->options, command->shared };

	snprintf(given, sizeof(given), "%.*s", (int)(size < sizeof(given) ? size : 0), name);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct command_option *option = tables[i]; option && option->name; option++)
			if (option->name[1])
				nearest_try(&nearest, option->name);
	if (nearest.best[0])
		snprintf(what, sizeof(what), "; did you mean --%s?", nearest.best);
	complain("%s: there is no option %s%s (see queryprof %s --help)", command->name, word, what,
	         command->name);
	return COMMAND_MISUSED;
}

/* "a, b or c" */
static void list_words(const struct command_option *option, char *list, size_t size)
{
	size_t used = 0;

	list[0] = 0;
	for (size_t i = 0; option->word_at(i) && used < size; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s",
		                         !i                       ? ""
		                         : option->word_at(i + 1) ? ", "
		                                                  : " or ",
		                         option->word_at(i));
}

/* A word such as label:KEY matches every value with the same beginning. */
static bool is_word(const struct command_option *option, const char *value)
{
	for (size_t i = 0; option->word_at(i); i++) {
		const char *word = option->word_at(i), *colon = strchr(word, ':');
		size_t begin = colon ? (size_t)(colon - word) + 1 : 0;

		if (colon ? strncmp(word, value, begin) == 0 && value[begin] : strcmp(word, value) == 0)
			return true;
	}
	return false;
}

static bool is_number(const char *value)
{
	return value[0] && strlen(value) < 18 && !value[strspn(value, "0123456789")];
}

static bool is_duration(const struct command_option *option)
{
	return option->kind == OPTION_PERIOD || option->kind == OPTION_SECONDS;
}

/* Settings are in nanoseconds. A user who writes a small number means another unit. */
static bool lacks_unit(const struct command_option *option, const char *value)
{
	return is_duration(option) && is_number(value) && strlen(value) < 5 && atoi(value) > 0;
}

/* The checks of all commands. A command_result. */
static int check_value(const struct command *command, const struct command_option *option, const char *value)
{
	char words[256] = "a whole number, such as 20";
	const char *unit = value + strspn(value, "0123456789");
	const bool is_time = unit > value && unit < value + 10 && *unit && !unit[strspn(unit, "usminhdw")];

	if (lacks_unit(option, value)) {
		complain("%s: --%s %s has no unit: --%s %s%s?", command->name, option->name, value,
		         option->name, value, option->kind == OPTION_SECONDS ? "s" : "ms");
		return COMMAND_MISUSED;
	}
	if (is_duration(option) && strchr("0123456789", value[0]) && *value &&
	    !strcmp(value + strspn(value, "0123456789."), "m")) {
		const int digits = (int)(unit - value);

		complain("%s: --%s %s; m is not a unit: --%s %.*sms, or --%s %.*smin?", command->name,
		         option->name, value, option->name, digits, value, option->name, digits, value);
		return COMMAND_MISUSED;
	}
	if (strcmp(unit, "m") == 0)
		unit = "min";
	if (is_time && option->kind == OPTION_NUMBER && options_find(command, "since", 5)) {
		complain("%s: --%s %s is a time; expected a whole number, or --since end-%d%s for the last "
		         "%d%s of the file, --since %d%s for the last %d%s until now",
		         command->name, option->name, value, atoi(value), unit, atoi(value), unit,
		         atoi(value), unit, atoi(value), unit);
		return COMMAND_MISUSED;
	}
	if (option->kind == OPTION_WORD)
		list_words(option, words, sizeof(words));
	if (option->kind == OPTION_WORD ? is_word(option, value)
	                                : option->kind != OPTION_NUMBER || is_number(value))
		return COMMAND_FINE;
	complain("%s: --%s %s; expected %s", command->name, option->name, value, words);
	return COMMAND_MISUSED;
}

int options_read(const struct command *command, int *count, char **argv, bool *wants_help)
{
	const int argc = *count;
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
		if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
			*wants_help = true;
			return COMMAND_FINE;
		}
		const char *equals = strchr(word, '=');
		const char *name = word + (is_short ? 1 : 2);
		size_t size = equals ? (size_t)(equals - name) : strlen(name);
		const struct command_option *option =
			is_short == (size == 1) ? options_find(command, name, size) : NULL;
		if (!option)
			return complain_of_option(command, word, name, size);
		if (!option->value && equals)
			return misuse(command, "this option takes no value:", word);
		if (option->value && !equals && ++i == argc)
			return misuse(command, "a value is missing after", word);
		const char *value = !option->value ? "1" : equals ? equals + 1 : argv[i];
		int result = check_value(command, option, value);
		if (result == COMMAND_FINE && option->to)
			*option->to = value;
		else if (result == COMMAND_FINE)
			result = command->take(option, value);
		if (result)
			return result;
	}
	if (kept == 0 && command->reads_file)
		argv[kept++] = (char *)TRACE_FILE_DEFAULT; /* replaces at least the NULL at the end */
	if (kept < command->arguments_min) {
		complain("usage: queryprof %s %s (see queryprof %s --help)", command->name,
		         command->arguments, command->name);
		return COMMAND_MISUSED;
	}
	if (kept > command->arguments_max)
		return misuse(command, "unexpected argument", argv[command->arguments_max]);
	*count = kept;
	return COMMAND_FINE;
}
