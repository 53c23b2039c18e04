/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/bound_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_token.h"

#define EXPANDED_MAX 65536

/* A value may be a blob of a gigabyte, so SQLite gets a lower limit temporarily. */
char *bound_values_expand(const sqlite3_api_routines *api, sqlite3 *db, sqlite3_stmt *stmt)
{
	int limit = api->limit(db, SQLITE_LIMIT_LENGTH, -1);
	char *text;

	if (limit > EXPANDED_MAX)
		api->limit(db, SQLITE_LIMIT_LENGTH, EXPANDED_MAX);
	text = api->expanded_sql(stmt);
	api->limit(db, SQLITE_LIMIT_LENGTH, limit);
	return text;
}

static bool precedes_pattern(const struct sql_token *token)
{
	static const char *const words[] = { "LIKE", "GLOB", NULL };

	return token->kind == SQL_WORD && sql_token_is_one_of(token, words);
}

static bool has_patterns(const char *text)
{
	const char *const end = text + strlen(text);
	struct sql_token token;

	for (bool is_next = false; (token = sql_token_next(text, end)).size; text = token.at + token.size) {
		if (is_next && token.kind == SQL_PARAMETER)
			return true;
		if (token.kind != SQL_COMMENT)
			is_next = precedes_pattern(&token);
	}
	return false;
}

static const char *end_of_number(const char *value)
{
	const char *digits = value + (*value == '-'), *end = digits + strspn(digits, ".0123456789");

	if (end > digits && *end == 'e' && (end[1] == '+' || end[1] == '-'))
		end += 2 + strspn(end + 2, "0123456789");
	return end > digits ? end : NULL;
}

/* The end of a value as SQLite writes it; NULL: it is none. */
static const char *end_of_value(const char *value)
{
	if (!strncmp(value, "NULL", strlen("NULL")))
		return value + strlen("NULL");
	if (!strncmp(value, "zeroblob(", strlen("zeroblob(")))
		return value + strcspn(value, ")") + 1;
	if (*value == 'x')
		value++;
	if (*value != '\'')
		return end_of_number(value);
	while ((value = strchr(value + 1, '\'')) && value[1] == '\'')
		value++;
	return value ? value + 1 : NULL;
}

/* False: the expanded text is not the text with values. */
static bool write_patterns(FILE *to, const char *text, const char *expanded)
{
	const char *const end = text + strlen(text);
	struct sql_token token;

	for (bool is_pattern = false; (token = sql_token_next(text, end)).size;
	     text = token.at + token.size) {
		const size_t before = (size_t)(token.at - text),
			     same = token.kind == SQL_PARAMETER ? before : before + token.size;

		if (strncmp(text, expanded, same) != 0)
			return false;
		fwrite(text, 1, same, to);
		expanded += same;
		if (token.kind == SQL_PARAMETER) {
			const char *const value = expanded;

			if (!(expanded = end_of_value(value)))
				return false;
			if (is_pattern && *value == '\'')
				fprintf(to, " %.*s", (int)(expanded - value), value);
			else
				fwrite(token.at, 1, token.size, to);
		}
		if (token.kind != SQL_COMMENT)
			is_pattern = precedes_pattern(&token);
	}
	return !strcmp(text, expanded);
}

char *bound_values_patterns(const sqlite3_api_routines *api, sqlite3 *db, sqlite3_stmt *stmt,
                            const char *text)
{
	char *expanded = has_patterns(text) ? bound_values_expand(api, db, stmt) : NULL, *made = NULL;
	size_t size;
	FILE *to = expanded ? open_memstream(&made, &size) : NULL;
	const bool is_fine = to && write_patterns(to, text, expanded);

	api->free(expanded);
	if (to && !fclose(to) && is_fine)
		return made;
	free(made);
	return NULL;
}
