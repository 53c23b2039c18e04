/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/limits_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/line/command.h"
#include "cmd/line/moment.h"

enum kind { NUMBER, FLAG, TIME, TEXT };

static const struct {
	const char *name;
	enum kind kind;
} keys[LIMITS_KEYS] = {
	[LIMIT_SCAN] = { "max-scan", NUMBER },     [LIMIT_SORT] = { "no-sort", FLAG },
	[LIMIT_INDEX] = { "no-auto-index", FLAG }, [LIMIT_TIME] = { "max-time", TIME },
	[LIMIT_RUNS] = { "max-runs", NUMBER },     [LIMITS_ID] = { "id", TEXT },
	[LIMITS_LIKE] = { "like", TEXT },          [LIMITS_EXCEPT] = { "except", FLAG },
};
#define EXPECTED_KEYS                                                                                        \
	"max-scan, no-sort, no-auto-index, max-time or max-runs, and in [[statement]] id, like or except"

static const char *const expected[] = {
	[NUMBER] = "a whole number, such as 1000",
	[FLAG] = "true or false",
	[TIME] = "a time in quotes, as \"50ms\"",
	[TEXT] = "a text in quotes",
};

#define LINE_SIZE 4096

static char *skip_blanks(char *at)
{
	return at + strspn(at, " \t");
}

static bool is_end(const char *at)
{
	return !*at || *at == '#';
}

/* A string, whose quotes are removed in place. NULL: not a string. *next: the text after it. */
static char *take_text(char *at, char **next)
{
	const char quote = *at;
	char *to = at, *from = at + 1;

	if (quote != '"' && quote != '\'')
		return NULL;
	while (*from && *from != quote) {
		if (quote == '"' && *from == '\\' && *++from != '"' && *from != '\\')
			return NULL;
		*to++ = *from++;
	}
	if (*from != quote)
		return NULL;
	*to = 0;
	*next = from + 1;
	return at;
}

static bool is_value(enum kind kind, bool is_text, const char *value)
{
	int64_t ns;

	switch (kind) {
	case NUMBER: return !is_text && *value && strlen(value) < 18 && !value[strspn(value, "0123456789")];
	case FLAG: return !is_text && (!strcmp(value, "true") || !strcmp(value, "false"));
	case TIME: return is_text && moment_parse_duration(value, &ns) && ns > 0;
	case TEXT: break;
	}
	return is_text && *value;
}

/* COMMAND_MISUSED after a complaint. */
static int take_value(const char *path, int line, struct limits *limits, enum limits_key key, char *at)
{
	char *next = at + strcspn(at, " \t#"), *value = take_text(at, &next);
	const bool is_text = value != NULL;
	const char after = is_text ? 0 : *next;

	if (!is_text) {
		value = at;
		*next = 0;
	}
	char *rest = is_text ? skip_blanks(next) : after ? skip_blanks(next + 1) : next;
	const bool is_fine = (after == '#' || is_end(rest)) && is_value(keys[key].kind, is_text, value);

	if (!is_fine) {
		complain("%s:%d: %s = %s; expected %s", path, line, keys[key].name, value,
		         expected[keys[key].kind]);
		return COMMAND_MISUSED;
	}
	if (limits->values[key]) {
		complain("%s:%d: %s is given twice", path, line, keys[key].name);
		return COMMAND_MISUSED;
	}
	limits->values[key] = text_format("%s", keys[key].kind != FLAG ? value : *value == 't' ? "1" : "0");
	return limits->values[key] ? COMMAND_FINE : complain("out of memory");
}

static int take_key(const char *path, int line, struct limits *limits, bool is_statement, char *text)
{
	const size_t size = strcspn(text, " \t=");
	char *at = skip_blanks(text + size);

	for (int key = 0; key < LIMITS_KEYS; key++)
		if (strlen(keys[key].name) == size && strncmp(keys[key].name, text, size) == 0 &&
		    *at == '=' && (is_statement || key < LIMITS_ID))
			return take_value(path, line, limits, (enum limits_key)key, skip_blanks(at + 1));
	complain("%s:%d: %s; expected KEY = VALUE with a key of " EXPECTED_KEYS, path, line, text);
	return COMMAND_MISUSED;
}

/* Whether the line is only the heading `name`. */
static bool is_heading(char *text, const char *name)
{
	return strncmp(text, name, strlen(name)) == 0 && is_end(skip_blanks(text + strlen(name)));
}

static int take_line(const char *path, int line, limits_vector *file, int *table, char *text)
{
	text[strcspn(text, "\r\n")] = 0;
	text = skip_blanks(text);
	if (is_end(text))
		return COMMAND_FINE;
	if (is_heading(text, "[limits]") && *table < 0) {
		*table = 0;
	} else if (is_heading(text, "[[statement]]")) {
		if (!vector_push(file, (struct limits){ .line = line }))
			return complain("out of memory");
		*table = 1;
	} else if (*text != '[' && *table >= 0) {
		return take_key(path, line, &file->items[*table ? file->count - 1 : 0], *table > 0, text);
	} else {
		complain("%s:%d: %s; expected [limits], once and first, or [[statement]]", path, line, text);
		return COMMAND_MISUSED;
	}
	return COMMAND_FINE;
}

/* Each [[statement]] must name its statement. */
static int check(const char *path, const limits_vector *file)
{
	for (size_t i = 1; i < file->count; i++) {
		const char *id = file->items[i].values[LIMITS_ID];

		if (!id == !file->items[i].values[LIMITS_LIKE])
			complain("%s:%d: [[statement]] needs either id or like", path, file->items[i].line);
		else if (id && (strlen(id) > 16 || id[strspn(id, "0123456789abcdef")]))
			complain("%s:%d: id = %s; expected the id of a statement, as queryprof queries shows "
			         "it",
			         path, file->items[i].line, id);
		else
			continue;
		return COMMAND_MISUSED;
	}
	return COMMAND_FINE;
}

int limits_file_read(const char *path, limits_vector *file)
{
	FILE *from = fopen(path, "re");
	char text[LINE_SIZE];
	int table = -1, line = 0, result = COMMAND_FINE;

	*file = (limits_vector){ 0 };
	if (!vector_add(file) || !from)
		result = complain("%s: %s", path, from ? "out of memory" : strerror(errno));
	while (!result && fgets(text, sizeof(text), from)) {
		line++;
		if (strlen(text) == sizeof(text) - 1) {
			complain("%s:%d: the line is longer than %d bytes", path, line, LINE_SIZE - 2);
			result = COMMAND_MISUSED;
		} else {
			result = take_line(path, line, file, &table, text);
		}
	}
	if (from && !result && ferror(from))
		result = complain("%s: %s", path, strerror(errno));
	if (from)
		fclose(from);
	return result ? result : check(path, file);
}

void limits_file_free(limits_vector *file)
{
	for (size_t i = 0; i < file->count; i++)
		for (int key = 0; key < LIMITS_KEYS; key++)
			free(file->items[i].values[key]);
	vector_free(file);
}
