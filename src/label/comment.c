/* SPDX-License-Identifier: Apache-2.0 */
#include "label/comment.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_token.h"
#include "label/pairs.h"

/* A longer comment cannot be a list of labels. */
#define COMMENT_MAX 65536u

struct slice {
	const char *at, *end;
};

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '-' || c == '.' || c == '%';
}

static void trim(struct slice *slice)
{
	while (slice->at < slice->end && sql_is_space(*slice->at))
		slice->at++;
	while (slice->at < slice->end && sql_is_space(slice->end[-1]))
		slice->end--;
}

/* --- sqlcommenter ------------------------------------------------------------------------ */

static int digit(char c)
{
	const char letter = (char)(c | 0x20);

	return c >= '0' && c <= '9' ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* The byte of %20, or of %%20: sqlcommenter doubles each percent sign for drivers that format the
 * statement, and other drivers receive it doubled. Below 0: not an encoding. */
static int parse_byte(struct slice *from)
{
	const char *at = from->at + 1;

	if (*from->at != '%')
		return -1;
	at += at < from->end && *at == '%';
	if (from->end - at < 2 || digit(at[0]) < 0 || digit(at[1]) < 0)
		return -1;
	from->at = at + 2;
	return digit(at[0]) * 16 + digit(at[1]);
}

/* Decodes percent-encoding and, in a value, backslashes. Other characters stay as they are. Returns
 * the size, up to `most`. */
static size_t decode(struct slice from, char *to, size_t most)
{
	char *start = to;

	while (from.at < from.end && (size_t)(to - start) < most) {
		const int byte = parse_byte(&from);

		if (byte >= 0) {
			*to++ = (char)byte;
			continue;
		}
		from.at += *from.at == '\\' && from.end - from.at > 1;
		*to++ = *from.at++;
	}
	return (size_t)(to - start);
}

static struct slice parse_name(struct slice *rest)
{
	struct slice name = { rest->at, rest->at };

	while (name.end < rest->end && is_name(*name.end))
		name.end++;
	rest->at = name.end;
	return name;
}

/* A label follows each comma. */
static bool parse_comma(struct slice *rest)
{
	bool found = rest->at < rest->end && *rest->at == ',';

	rest->at += found;
	return found;
}

/* One byte more than a label may have, to see whether the last character is complete. */
#define CUT(most) ((most) + 1)

static bool add_decoded(struct label_pairs *pairs, struct slice key, struct slice value)
{
	char key_text[CUT(LABEL_KEY_MAX)], value_text[CUT(LABEL_TEXT_MAX)];
	size_t key_size = decode(key, key_text, sizeof(key_text));

	return label_pairs_add(pairs, key_text, key_size, value_text,
	                       decode(value, value_text, sizeof(value_text)));
}

/* False: this is a different comment. */
static bool add_quoted(struct label_pairs *pairs, struct slice rest)
{
	trim(&rest);
	do {
		while (rest.at < rest.end && sql_is_space(*rest.at))
			rest.at++;
		struct slice key = parse_name(&rest), value;

		if (key.at == key.end || rest.end - rest.at < 3 || rest.at[0] != '=' || rest.at[1] != '\'')
			return false;
		value.at = value.end = rest.at + 2;
		while (value.end < rest.end && *value.end != '\'')
			value.end += *value.end == '\\' ? 2 : 1;
		if (value.end >= rest.end || !add_decoded(pairs, key, value))
			return false;
		rest.at = value.end + 1;
		while (rest.at < rest.end && sql_is_space(*rest.at))
			rest.at++;
	} while (parse_comma(&rest));
	return rest.at == rest.end;
}

/* --- key:value -------------------------------------------------------------------------- */

static bool add_plain(struct label_pairs *pairs, struct slice rest)
{
	do {
		struct slice key = parse_name(&rest), value;

		if (key.at == key.end || rest.at == rest.end || *rest.at != ':')
			return false;
		value.at = value.end = ++rest.at;
		while (value.end < rest.end && *value.end != ',')
			value.end++;
		if (value.at == value.end || sql_is_space(*value.at) || sql_is_space(value.end[-1]) ||
		    !label_pairs_add(pairs, key.at, (size_t)(key.end - key.at), value.at,
		                     (size_t)(value.end - value.at)))
			return false;
		rest.at = value.end;
	} while (parse_comma(&rest));
	return rest.at == rest.end;
}

/* --- the comments ------------------------------------------------------------------------- */

/* All of the comment's labels, or none. */
static void add_comment(struct label_pairs *pairs, struct slice comment)
{
	bool (*const formats[])(struct label_pairs *, struct slice) = { add_quoted, add_plain };

	if (comment.at >= comment.end || comment.end - comment.at > COMMENT_MAX)
		return;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct label_pairs own = { .items = { 0 } };
		if (formats[i](&own, comment)) {
			label_pairs_move(pairs, &own);
			return;
		}
		label_pairs_free(&own);
	}
}

/* The comments before the first word, and those after the last. */
#define COMMENTS_MAX 8

struct comments {
	struct slice items[COMMENTS_MAX];
	size_t count;
};

static void note(struct comments *comments, struct slice comment)
{
	if (comments->count == COMMENTS_MAX)
		memmove(comments->items, comments->items + 1, (COMMENTS_MAX - 1) * sizeof(comment));
	else
		comments->count++;
	comments->items[comments->count - 1] = comment;
}

char *comment_labels(const char *sql, size_t size)
{
	struct comments before = { .count = 0 }, behind = { .count = 0 };
	struct label_pairs pairs = { .items = { 0 } };
	const char *end = sql + size;
	struct sql_token token;
	bool begun = false;
	char *text = NULL;

	/* Most statements have no comments. */
	if (!memchr(sql, '*', size))
		return NULL;
	for (; (token = sql_token_next(sql, end)).size; sql = token.at + token.size) {
		if (token.kind == SQL_COMMENT && *token.at == '/') {
			if (token.size < 4 || memcmp(token.at + token.size - 2, "*/", 2) != 0)
				break; /* it has no end */
			note(begun ? &behind : &before,
			     (struct slice){ token.at + 2, token.at + token.size - 2 });
		} else if (token.kind != SQL_COMMENT && *token.at != ';') {
			begun = true;
			behind.count = 0;
		}
	}
	for (size_t i = behind.count; i-- > 0;)
		add_comment(&pairs, behind.items[i]);
	for (size_t i = before.count; i-- > 0;)
		add_comment(&pairs, before.items[i]);
	if (pairs.items.count)
		text = label_pairs_text(&pairs);
	label_pairs_free(&pairs);
	return text;
}
