/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens go straight into the hash, so nothing is allocated. These are folded:
 *   literals (strings, numbers, blobs) and parameters  → one placeholder
 *   a list of those, `1, 2, ?, 'x'`                    → the same one placeholder,
 *     so that IN lists of different lengths are one statement
 *   comments, white space, a `;` at the end            → nothing
 *   letters of words                                   → lower case (SQLite takes
 *     keywords and names in any case); quoted names stay as they are
 */
#include "query/normalize.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define FNV_OFFSET 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

enum token { TOKEN_NONE, TOKEN_WORD, TOKEN_VALUE, TOKEN_COMMA, TOKEN_OTHER };

struct shape {
	uint64_t hash;
	/* Held back until what follows shows whether they belong to a list, or end
	 * the statement. */
	bool value, comma;
	size_t semicolons;
};

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void add_byte(struct shape *shape, unsigned char byte)
{
	shape->hash = (shape->hash ^ byte) * FNV_PRIME;
}

static void add_held(struct shape *shape)
{
	for (; shape->semicolons; shape->semicolons--)
		add_byte(shape, ';');
	if (shape->value)
		add_byte(shape, '?');
	if (shape->comma)
		add_byte(shape, ',');
	shape->value = shape->comma = false;
}

static void add_token(struct shape *shape, enum token token, const char *text, size_t size)
{
	switch (token) {
	case TOKEN_VALUE:
		if (shape->value && shape->comma) {
			shape->comma = false; /* one more of the list */
			return;
		}
		add_held(shape);
		shape->value = true;
		return;
	case TOKEN_COMMA:
		if (shape->value && !shape->comma) {
			shape->comma = true;
			return;
		}
		break;
	default: break;
	}
	if (size == 1 && *text == ';') {
		if (shape->value)
			add_held(shape);
		shape->semicolons++;
		return;
	}
	add_held(shape);
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (token == TOKEN_WORD && c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		add_byte(shape, (unsigned char)c);
	}
	add_byte(shape, 0); /* the end of a token: `a b` is not `ab` */
}

/* Skips the closing quote; a doubled quote is part of the text. */
static size_t skip_quoted(const char *sql, size_t size, size_t at, char quote)
{
	for (at++; at < size; at++) {
		if (sql[at] != quote)
			continue;
		if (quote == ']' || at + 1 >= size || sql[at + 1] != quote)
			return at + 1;
		at++;
	}
	return size;
}

static size_t skip_comment(const char *sql, size_t size, size_t at)
{
	if (sql[at] == '-') {
		while (at < size && sql[at] != '\n')
			at++;
		return at;
	}
	/* The star that begins it does not end it, too. */
	for (at += 3; at < size; at++) {
		if (sql[at] == '/' && sql[at - 1] == '*')
			return at + 1;
	}
	return size;
}

static size_t skip_number(const char *sql, size_t size, size_t at)
{
	while (at < size &&
	       (text_is_word(sql[at]) || sql[at] == '.' ||
	        ((sql[at] == '+' || sql[at] == '-') && (sql[at - 1] | 0x20) == 'e' &&
	         (is_digit(sql[at - 2]) || sql[at - 2] == '.') && at + 1 < size && is_digit(sql[at + 1]))))
		at++;
	return at;
}

static size_t skip_word(const char *sql, size_t size, size_t at)
{
	while (at < size && text_is_word(sql[at]))
		at++;
	return at;
}

uint64_t normalize_hash(const char *sql, size_t size)
{
	struct shape shape = { .hash = FNV_OFFSET };
	size_t at = 0;

	while (at < size) {
		char c = sql[at], next = at + 1 < size ? sql[at + 1] : 0;
		enum token token = TOKEN_OTHER;
		size_t end;

		if (is_space(c)) {
			at++;
			continue;
		}
		if ((c == '-' && next == '-') || (c == '/' && next == '*')) {
			at = skip_comment(sql, size, at);
			continue;
		}
		if (c == '\'') {
			token = TOKEN_VALUE;
			end = skip_quoted(sql, size, at, c);
		} else if ((c == 'x' || c == 'X') && next == '\'') {
			token = TOKEN_VALUE;
			end = skip_quoted(sql, size, at + 1, next);
		} else if (c == '"' || c == '`') {
			end = skip_quoted(sql, size, at, c);
		} else if (c == '[') {
			end = skip_quoted(sql, size, at, ']');
		} else if (is_digit(c) || (c == '.' && is_digit(next))) {
			token = TOKEN_VALUE;
			end = skip_number(sql, size, at + 1);
		} else if (c == '?' ||
		           ((c == ':' || c == '@' || c == '$' || c == '#') && text_is_word(next))) {
			token = TOKEN_VALUE;
			end = skip_word(sql, size, at + 1);
		} else if (text_is_word(c)) {
			token = TOKEN_WORD;
			end = skip_word(sql, size, at);
		} else {
			token = c == ',' ? TOKEN_COMMA : TOKEN_OTHER;
			end = at + 1;
		}
		add_token(&shape, token, sql + at, end - at);
		at = end;
	}
	shape.semicolons = 0;
	add_held(&shape);
	return shape.hash;
}

/* Whether a label of a trace begins there: its key and the quote before its value. */
static size_t trace_label(const char *sql, size_t size)
{
	static const char *const keys[] = { "traceparent='", "tracestate='" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (size >= strlen(keys[i]) && !memcmp(sql, keys[i], strlen(keys[i])))
			return strlen(keys[i]);
	return 0;
}

static void add_comment_text(struct shape *shape, const char *sql, size_t size)
{
	for (size_t at = 0; at < size; at++) {
		size_t key = sql[at] == 't' ? trace_label(sql + at, size - at) : 0;
		const char *quote = key ? memchr(sql + at + key, '\'', size - at - key) : NULL;

		if (quote)
			at = (size_t)(quote - sql);
		else
			add_byte(shape, (unsigned char)sql[at]);
	}
}

uint64_t normalize_comments(const char *sql, size_t size)
{
	struct shape shape = { .hash = FNV_OFFSET };

	/* Most statements have no comments. */
	if (!memchr(sql, '*', size))
		return 0;
	for (size_t at = 0, end; at < size; at = end) {
		char c = sql[at], next = at + 1 < size ? sql[at + 1] : 0;

		end = at + 1;
		if ((c == '-' && next == '-') || (c == '/' && next == '*')) {
			end = skip_comment(sql, size, at);
			if (c == '/')
				add_comment_text(&shape, sql + at, end - at);
		} else if (c == '\'' || c == '"' || c == '`') {
			end = skip_quoted(sql, size, at, c);
		} else if (c == '[') {
			end = skip_quoted(sql, size, at, ']');
		}
	}
	return shape.hash == FNV_OFFSET ? 0 : shape.hash;
}
