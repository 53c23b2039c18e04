/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes `PRAGMA query_profiler_cpu_time_period_ns = 1000000` work.
 *
 * SQLite offers PRAGMAs that it does not know to the file of the main database,
 * which is the host's, or to that of the schema named before it (schema.c uses
 * that). Either way they are carried out while they are being prepared: a host that
 * keeps prepared statements, as Python's sqlite3 does, would set nothing the second
 * time, and read the value of the first. So where statements can be seen before
 * SQLite sees them, a PRAGMA of queryprof's becomes a SELECT of the function that does the
 * same, run whenever the statement runs. Where they cannot be seen, the trace of the
 * statement that SQLite makes of an unknown PRAGMA, which does nothing, is what sets the
 * value (schema.c).
 *
 * A statement that SQLite's grammar would refuse is left alone, so that the message is SQLite's.
 */
#include "sql/pragma.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "settings/settings.h"

/* The rest of the text. `end` NULL: up to a zero, which is not looked for: a
 * host that works through a long script hands the rest of it over each time. */
struct rest {
	const char *start, *end;
};

/* The character `i` places on; 0: the text has ended by then. Those before it must
 * have been looked at. */
static char peek(const struct rest *text, size_t i)
{
	return text->end && (size_t)(text->end - text->start) <= i ? 0 : text->start[i];
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v'); /* as SQLite has it */
}

/* White space and comments; a comment may lack its end at the end of the text. */
static void skip_blank(struct rest *text)
{
	for (;;) {
		if (is_space(peek(text, 0))) {
			text->start++;
		} else if (peek(text, 0) == '-' && peek(text, 1) == '-') {
			while (peek(text, 0) && peek(text, 0) != '\n')
				text->start++;
		} else if (peek(text, 0) == '/' && peek(text, 1) == '*' && peek(text, 2)) {
			for (text->start += 3; peek(text, 0); text->start++)
				if (peek(text, 0) == '/' && text->start[-1] == '*')
					break;
			text->start += peek(text, 0) != 0;
		} else {
			break;
		}
	}
}

static bool skip_char(struct rest *text, char c)
{
	skip_blank(text);
	if (peek(text, 0) != c)
		return false;
	text->start++;
	return true;
}

/* A text in quotes of any of SQLite's four kinds. */
static bool parse_quoted(struct rest *text, char *value, size_t room)
{
	static const char quotes[][2] = { { '"', '"' }, { '\'', '\'' }, { '`', '`' }, { '[', ']' } };
	size_t size = 0;
	char close = 0;

	for (size_t i = 0; i < sizeof(quotes) / sizeof(*quotes); i++)
		if (peek(text, 0) == quotes[i][0])
			close = quotes[i][1];
	if (!close)
		return false;
	for (text->start++; peek(text, 0); text->start++) {
		if (peek(text, 0) == close) {
			if (close == ']' || peek(text, 1) != close) {
				text->start++;
				value[size] = 0;
				return true;
			}
			text->start++; /* a doubled quote is one */
		}
		if (size == room - 1)
			return false;
		value[size++] = peek(text, 0);
	}
	return false;
}

static bool parse_name(struct rest *text, char *name, size_t room)
{
	size_t size = 0;

	skip_blank(text);
	if (!text_is_word(peek(text, 0)))
		return parse_quoted(text, name, room);
	for (; text_is_word(peek(text, 0)); text->start++) {
		if (size == room - 1)
			return false;
		name[size++] = peek(text, 0);
	}
	name[size] = 0;
	return true;
}

/* A text, a word or a number, which may have a sign, a fraction, an exponent and,
 * beyond SQLite's own, a unit. */
static bool parse_value(struct rest *text, char *value, size_t room)
{
	size_t size = 0;
	char c;

	skip_blank(text);
	c = peek(text, 0);
	if (c == '+' || c == '-') {
		value[size++] = c;
		text->start++;
		skip_blank(text);
	} else if (!text_is_word(c) && c != '.') {
		return parse_quoted(text, value, room);
	}
	for (char before = 0; size < room - 1; text->start++) {
		c = peek(text, 0);
		if (!text_is_word(c) && c != '.' && !((c == '+' || c == '-') && (before | 0x20) == 'e'))
			break;
		value[size++] = before = c;
	}
	value[size] = 0;
	return size && text_is_word(value[size - 1]);
}

static char *make_select(const char *name, const char *value)
{
	size_t size = 2 * strlen(name) + (value ? 2 * strlen(value) : 0) + 64;
	char *sql = malloc(size), *at;

	if (!sql)
		return NULL;
	at = sql + snprintf(sql, size, value ? "SELECT set_setting('%s','" : "SELECT get_setting('%s", name);
	for (; value && *value; value++) {
		if (*value == '\'')
			*at++ = '\'';
		*at++ = *value;
	}
	snprintf(at, size - (size_t)(at - sql), "') AS \"%s\"", name);
	return sql;
}

/* `text` begins behind the word PRAGMA. */
static bool parse(struct rest text, struct pragma *pragma)
{
	char *name = pragma->name;
	bool closing;

	if (text_is_word(peek(&text, 0)) || !parse_name(&text, name, sizeof(pragma->name)))
		return false;
	if (skip_char(&text, '.') &&
	    (strcasecmp(name, "system") || !parse_name(&text, name, sizeof(pragma->name))))
		return false;
	if (!settings_find(name))
		return false;
	for (char *c = name; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);

	closing = skip_char(&text, '(');
	if (closing || skip_char(&text, '=')) {
		size_t room = (text.end ? (size_t)(text.end - text.start) : strlen(text.start)) + 2;
		pragma->value = malloc(room);
		if (!pragma->value || !parse_value(&text, pragma->value, room) ||
		    (closing && !skip_char(&text, ')')))
			return false;
	}
	if (!skip_char(&text, ';') && peek(&text, 0))
		return false;
	pragma->tail = text.start;
	return true;
}

bool pragma_parse(const char *sql, int bytes, struct pragma *pragma)
{
	static const char word[] = "pragma";
	struct rest text = { sql, bytes < 0 ? NULL : sql + bytes };

	*pragma = (struct pragma){ .value = NULL };
	while (skip_char(&text, ';')) {
	} /* and all that is blank */
	for (int i = 0; word[i]; i++, text.start++)
		if ((peek(&text, 0) | 0x20) != word[i])
			return false;
	if (parse(text, pragma))
		return true;
	free(pragma->value);
	return false;
}

char *pragma_rewrite(const char *sql, int bytes, const char **tail)
{
	struct pragma pragma;
	char *select;

	if (!pragma_parse(sql, bytes, &pragma))
		return NULL;
	*tail = pragma.tail;
	select = make_select(pragma.name, pragma.value);
	free(pragma.value);
	return select;
}
