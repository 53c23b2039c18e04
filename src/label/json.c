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

static char *write_utf8(char *to, unsigned code)
{
	if (code < 0x80) {
		*to++ = (char)code;
	} else if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
		*to++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*to++ = (char)(0xe0 | code >> 12);
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	} else {
		*to++ = (char)(0xf0 | code >> 18);
		*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	}
	return to;
}

static bool take_hexadecimal(const char **at, unsigned *code)
{
	char digits[5] = "", *end;

	strncpy(digits, *at, 4);
	*code = (unsigned)strtoul(digits, &end, 16);
	if (end != digits + 4 || strspn(digits, "0123456789abcdefABCDEF") != 4)
		return false;
	*at += 4;
	return true;
}

/* Half of a character, and alone none. */
static bool is_surrogate(unsigned code)
{
	return code >= 0xd800 && code < 0xe000;
}

/* Behind the backslash. */
static bool take_escape(const char **at, char **to)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *found = **at ? strchr(letters, **at) : NULL;
	unsigned code, low;

	if (found) {
		*(*to)++ = meant[found - letters];
		++*at;
		return true;
	}
	if (**at != 'u')
		return false;
	++*at;
	if (!take_hexadecimal(at, &code))
		return false;
	if (code >= 0xd800 && code < 0xdc00 && (*at)[0] == '\\' && (*at)[1] == 'u') {
		const char *second = *at + 2;

		if (!take_hexadecimal(&second, &low))
			return false;
		if (is_surrogate(low) && low >= 0xdc00) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			*at = second;
		}
	}
	*to = write_utf8(*to, is_surrogate(code) ? 0xfffd : code);
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
