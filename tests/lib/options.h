/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a program that measures for minutes or hours. After an unknown option it ends immediately,
 * with a line that names the option and the allowed ones.
 */
#ifndef TESTS_LIB_OPTIONS_H
#define TESTS_LIB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of the three pointers is the option's destination. A number must be at least `least`. */
struct test_option {
	const char *name, *value; /* "--seconds", "S"; NULL: it takes no value */
	bool *flag;
	const char **text;
	double *number, least;
};

__attribute__((noreturn)) static inline void refuse_option(const char *program, const char *problem,
                                                           const struct test_option *options, size_t count)
{
	fprintf(stderr, "%s: %s; the options are", program, problem);
	for (size_t i = 0; i < count; i++) {
		const char *value = options[i].value;

		fprintf(stderr, "%s %s%s%s", i != 0 ? "," : "", options[i].name, value ? " " : "",
		        value ? value : "");
		if (options[i].number)
			fprintf(stderr, " (%g or more)", options[i].least);
	}
	fprintf(stderr, "\n");
	exit(2);
}

static inline bool read_number(const char *text, double least, double *number)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= least))
		return false;
	*number = value;
	return true;
}

static inline void read_options(int argc, char **argv, const struct test_option *options, size_t count)
{
	char problem[200] = "";

	for (int i = 1; i < argc; i++) {
		const struct test_option *option = options;

		while (option < options + count && strcmp(option->name, argv[i]) != 0)
			option++;
		if (option == options + count)
			snprintf(problem, sizeof(problem), "%s is no option", argv[i]);
		else if (option->flag)
			*option->flag = true;
		else if (++i == argc)
			snprintf(problem, sizeof(problem), "%s has no value", option->name);
		else if (option->text)
			*option->text = argv[i];
		else if (!read_number(argv[i], option->least, option->number))
			snprintf(problem, sizeof(problem), "%s is no value of %s", argv[i], option->name);
		if (problem[0] != '\0')
			refuse_option(argv[0], problem, options, count);
	}
}

#endif
