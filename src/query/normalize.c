/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens go straight into the hash, so nothing is allocated. These are folded:
 *   literals (strings, numbers, blobs) and parameters  → one placeholder
 *   a list of those, `1, 2, ?, 'x'`                    → the same one placeholder,
 *     so that IN lists of different lengths are one statement
 *   comments, white space, a `;` at the end            → nothing
 *   letters of words                                   → lower case (SQLite takes
 *     keywords and names in any case); quoted names stay as they are
 *   the name of a savepoint, and that of a table or    → the placeholder of a literal,
 *     index in PRAGMA table_info() and the like            because ORMs number their savepoints
 *                                                          and ask for each table
 */
#include "query/normalize.h"

#include <stdbool.h>
#include <string.h>

#include "base/sql_token.h"

#define FNV_OFFSET 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

struct shape {
	uint64_t hash;
	/* Held back until what follows shows whether they belong to a list, or end
	 * the statement. */
	bool value, comma;
	size_t semicolons;
};

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

static void add_token(struct shape *shape, const struct sql_token *token)
{
	if (token->kind == SQL_LITERAL || token->kind == SQL_PARAMETER) {
		if (shape->value && shape->comma) {
			shape->comma = false; /* one more of the list */
			return;
		}
		add_held(shape);
		shape->value = true;
		return;
	}
	if (token->kind == SQL_SIGN && *token->at == ',' && shape->value && !shape->comma) {
		shape->comma = true;
		return;
	}
	if (token->kind == SQL_SIGN && *token->at == ';') {
		if (shape->value)
			add_held(shape);
		shape->semicolons++;
		return;
	}
	add_held(shape);
	for (size_t i = 0; i < token->size; i++) {
		char c = token->at[i];

		if (token->kind == SQL_WORD && c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		add_byte(shape, (unsigned char)c);
	}
	add_byte(shape, 0); /* the end of a token: `a b` is not `ab` */
}

/* Which names of a statement are values.
 *   SAVEPOINT name; RELEASE [SAVEPOINT] name; ROLLBACK [TRANSACTION] TO [SAVEPOINT] name
 *   PRAGMA [schema.]table_info(name) */
enum names { NAMES_MATTER, NAMES_OF_SAVEPOINTS, NAMES_OF_PRAGMA, NAMES_OF_ARGUMENTS };

static enum names names_after_first(const struct sql_token *token)
{
	static const char *const savepoint[] = { "SAVEPOINT", "RELEASE", "ROLLBACK", NULL };
	static const char *const pragma[] = { "PRAGMA", NULL };

	if (sql_token_is_one_of(token, savepoint))
		return NAMES_OF_SAVEPOINTS;
	return sql_token_is_one_of(token, pragma) ? NAMES_OF_PRAGMA : NAMES_MATTER;
}

/* `*names` for the tokens after this one, which is not the first. */
static bool is_value(const struct sql_token *token, enum names *names)
{
	static const char *const words[] = { "SAVEPOINT", "TRANSACTION", "TO", NULL };
	static const char *const asks[] = { "table_info",  "table_xinfo",      "index_list", "index_info",
		                            "index_xinfo", "foreign_key_list", NULL };

	if (*names == NAMES_OF_PRAGMA && sql_token_is_one_of(token, asks))
		*names = NAMES_OF_ARGUMENTS;
	else if (sql_token_is_name(token))
		return *names == NAMES_OF_ARGUMENTS ||
		       (*names == NAMES_OF_SAVEPOINTS && !sql_token_is_one_of(token, words));
	return false;
}

uint64_t normalize_hash(const char *sql, size_t size)
{
	struct shape shape = { .hash = FNV_OFFSET };
	const char *end = sql + size;
	struct sql_token token;
	enum names names = NAMES_MATTER;
	bool is_first = true;

	for (; (token = sql_token_next(sql, end)).size; sql = token.at + token.size) {
		if (token.kind == SQL_COMMENT)
			continue;
		if (is_first)
			names = names_after_first(&token);
		else if (names != NAMES_MATTER && is_value(&token, &names))
			token.kind = SQL_LITERAL;
		is_first = false;
		add_token(&shape, &token);
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
	const char *end = sql + size;
	struct sql_token token;

	/* Most statements have no comments. */
	if (!memchr(sql, '*', size))
		return 0;
	for (; (token = sql_token_next(sql, end)).size; sql = token.at + token.size)
		if (token.kind == SQL_COMMENT && *token.at == '/')
			add_comment_text(&shape, token.at, token.size);
	return shape.hash == FNV_OFFSET ? 0 : shape.hash;
}
