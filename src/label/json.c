/* SPDX-License-Identifier: Apache-2.0 */
#include "label/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPEN 0x7b
#define CLOSE 0x7d

static void skip_space(const char **at)
{
	*at += strspn(*at, " \t\r\n");
}

static bool take(const char **at, char c)
{
	skip_space(at);
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* Behind the backslash of an escape that is no number. */
static bool take_escape(const char **at, char **to)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *found = **at ? strchr(letters, **at) : NULL;

	if (!found)
		return false;
	*(*to)++ = meant[found - letters];
	++*at;
	return true;
}

/* The text of a string, malloc'ed; NULL: none. */
static char *take_string(const char **at, size_t *size)
{
	char *text, *to;
	bool is_sound = true;

	if (!take(at, '"') || !(text = to = malloc(strlen(*at) + 1)))
		return NULL;
	while (is_sound && **at && **at != '"') {
		if (label_decode_number(at, &to))
			continue;
		if (**at != '\\') {
			*to++ = *(*at)++;
			continue;
		}
		++*at;
		is_sound = take_escape(at, &to);
	}
	*to = 0;
	*size = (size_t)(to - text);
	if (is_sound && take(at, '"'))
		return text;
	free(text);
	return NULL;
}

static bool take_value(const char **at, struct label_pairs *pairs, const char *key, size_t key_size)
{
	char *text, *end;
	size_t size;
	bool added;

	skip_space(at);
	if (strncmp(*at, "null", 4) == 0) {
		*at += 4;
		return true;
	}
	if (**at == '"') {
		text = take_string(at, &size);
		added = text && label_pairs_add(pairs, key, key_size, text, size);
		free(text);
		return added;
	}
	errno = 0;
	long long number = strtoll(*at, &end, 10);
	if (end == *at || errno || (*end && strchr(".eE", *end)))
		return false; /* a number of another kind, or something else */
	*at = end;
	return label_pairs_add_number(pairs, key, number, NULL);
}

static bool take_members(const char **at, struct label_pairs *pairs)
{
	do {
		size_t size = 0;
		char *key = take_string(at, &size);
		bool added = key && size && strlen(key) == size && take(at, ':') &&
		             take_value(at, pairs, key, size);

		free(key);
		if (!added)
			return false;
	} while (take(at, ','));
	return take(at, CLOSE);
}

bool label_pairs_add_json(struct label_pairs *pairs, const char *json)
{
	const char *at = json;

	skip_space(&at);
	if (*at == '\0')
		return true;
	if (!take(&at, OPEN) || !(take(&at, CLOSE) || take_members(&at, pairs)))
		return false;
	skip_space(&at);
	return *at == '\0';
}
