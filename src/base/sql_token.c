/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sql_token.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* After the closing quote; a doubled quote is part of the text. */
static const char *quoted_end(const char *at, const char *end)
{
	const char quote = *at == '[' ? ']' : *at;

	for (at++; at < end; at++) {
		if (*at != quote)
			continue;
		if (quote == ']' || at + 1 >= end || at[1] != quote)
			return at + 1;
		at++;
	}
	return end;
}

static const char *comment_end(const char *at, const char *end)
{
	if (*at == '-') {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		return newline ? newline : end;
	}
	/* The star that begins it does not end it, too. */
	for (at += 3; at < end; at++)
		if (*at == '/' && at[-1] == '*')
			return at + 1;
	return end;
}

static const char *number_end(const char *at, const char *end)
{
	while (at < end && (text_is_word(*at) || *at == '.' ||
	                    ((*at == '+' || *at == '-') && (at[-1] | 0x20) == 'e' &&
	                     (is_digit(at[-2]) || at[-2] == '.') && at + 1 < end && is_digit(at[1]))))
		at++;
	return at;
}

static const char *word_end(const char *at, const char *end)
{
	while (at < end && text_is_word(*at))
		at++;
	return at;
}

struct sql_token sql_token_bare(const struct sql_token *token)
{
	const size_t quotes = token->kind == SQL_NAME && token->size > 1;

	return (struct sql_token){ token->kind, token->at + quotes, token->size - 2 * quotes };
}

bool sql_token_is_one_of(const struct sql_token *token, const char *const *words)
{
	for (; *words; words++)
		if (token->kind != SQL_NAME && strlen(*words) == token->size &&
		    !strncasecmp(token->at, *words, token->size))
			return true;
	return false;
}

struct sql_token sql_token_next(const char *sql, const char *end)
{
	enum sql_token_kind kind = SQL_SIGN;
	const char *after;

	while (sql < end && sql_is_space(*sql))
		sql++;
	if (sql == end)
		return (struct sql_token){ SQL_SIGN, sql, 0 };
	const char c = *sql, next = sql + 1 < end ? sql[1] : 0;

	after = sql + 1;
	if ((c == '-' && next == '-') || (c == '/' && next == '*')) {
		kind = SQL_COMMENT;
		after = comment_end(sql, end);
	} else if (c == '\'') {
		kind = SQL_LITERAL;
		after = quoted_end(sql, end);
	} else if ((c == 'x' || c == 'X') && next == '\'') {
		kind = SQL_LITERAL;
		after = quoted_end(sql + 1, end);
	} else if (c == '"' || c == '`' || c == '[') {
		kind = SQL_NAME;
		after = quoted_end(sql, end);
	} else if (is_digit(c) || (c == '.' && is_digit(next))) {
		kind = SQL_LITERAL;
		after = number_end(sql + 1, end);
	} else if (c == '?' || ((c == ':' || c == '@' || c == '$' || c == '#') && text_is_word(next))) {
		kind = SQL_PARAMETER;
		after = word_end(sql + 1, end);
	} else if (text_is_word(c)) {
		kind = SQL_WORD;
		after = word_end(sql, end);
	}
	return (struct sql_token){ kind, sql, (size_t)(after - sql) };
}
