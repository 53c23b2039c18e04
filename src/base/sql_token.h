/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of a statement. The text need not be valid SQL, complete or free of zeros.
 *
 *	while ((token = sql_token_next(sql, end)).size) {
 *		sql = token.at + token.size;
 *		...
 *	}
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum sql_token_kind {
	SQL_WORD,      /* a keyword or a name */
	SQL_NAME,      /* a quoted name */
	SQL_LITERAL,   /* a string, blob or number */
	SQL_PARAMETER, /* ?, ?1, :name, @name, $name */
	SQL_COMMENT,
	SQL_SIGN, /* any other byte */
};

struct sql_token {
	enum sql_token_kind kind;
	const char *at;
	size_t size; /* 0: the text has ended */
};

static inline bool sql_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool sql_token_is_name(const struct sql_token *token)
{
	return token->kind == SQL_WORD || token->kind == SQL_NAME;
}

/* A name without its quotes; other tokens as they are. */
struct sql_token sql_token_bare(const struct sql_token *token);

/* Whether it is one of these words without quotes, in any case; NULL ends the list. */
bool sql_token_is_one_of(const struct sql_token *token, const char *const *words);

/* The first token, after white space. What has no end extends to the end of the text. */
struct sql_token sql_token_next(const char *sql, const char *end);
