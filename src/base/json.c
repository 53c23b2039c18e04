/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NO_CHARACTER 0xfffd

/* --- writing -------------------------------------------------------------------------- */

/* Puts the character or byte at `*text`, and moves that to the next one. Those of `slashed` get a backslash.
 */
static char *put_character(char *to, const char **text, size_t left, const char *slashed, const char *also)
{
	size_t size = text_character_within(*text, left);
	unsigned code = size ? text_control(*text, size) : NO_CHARACTER;

	if (size == 1 && strchr(also, **text))
		code = (unsigned char)**text;
	if (code) {
		to += sprintf(to, "\\u%04x", code);
	} else {
		if (size == 1 && strchr(slashed, **text))
			*to++ = '\\';
		memcpy(to, *text, size);
		to += size;
	}
	*text += size ? size : 1;
	return to;
}

/* How many characters come that are written as they are, whoever asks: most of most texts. */
static size_t count_plain(const char *text, const char *end)
{
	const char *at = text;

	while (at < end && *at >= ' ' && *at <= '~' && *at != '"' && *at != '\\' && *at != '<')
		at++;
	return (size_t)(at - text);
}

static void write_characters(FILE *out, const char *text, size_t size, const char *slashed, const char *also)
{
	char character[8];

	for (const char *end = text + size; text < end;) {
		const size_t plain = *also && *also != '<' ? 0 : count_plain(text, end);

		fwrite_unlocked(text, 1, plain, out);
		text += plain;
		if (text == end)
			break;
		const char *behind = put_character(character, &text, (size_t)(end - text), slashed, also);

		fwrite_unlocked(character, 1, (size_t)(behind - character), out);
	}
}

void json_write_part(FILE *out, const char *text, const char *also)
{
	write_characters(out, text, strlen(text), "\"\\", also);
}

void json_write_text(FILE *out, const char *text, const char *also)
{
	putc_unlocked('"', out);
	json_write_part(out, text, also);
	putc_unlocked('"', out);
}

void json_write_made(FILE *out, const char *json, size_t size)
{
	write_characters(out, json, strnlen(json, size), "", "");
}

char *json_put_text(char *to, const char *text, size_t size)
{
	*to++ = '"';
	for (const char *end = text + size; text < end;)
		to = put_character(to, &text, (size_t)(end - text), "\"\\", "");
	*to++ = '"';
	return to;
}

/* --- reading -------------------------------------------------------------------------- */

static void skip_space(const char **at)
{
	while (**at == ' ' || **at == '\t' || **at == '\r' || **at == '\n')
		++*at;
}

bool json_read(const char **at, char c)
{
	skip_space(at);
	if (**at != c)
		return false;
	++*at;
	return true;
}

bool json_read_null(const char **at)
{
	skip_space(at);
	if (strncmp(*at, "null", 4) != 0)
		return false;
	*at += 4;
	return true;
}

#define DIGITS_SAFE 18 /* of no number that is too large */

bool json_read_integer(const char **at, uint64_t *number)
{
	const char *digits;
	uint64_t value = 0;
	size_t count;

	skip_space(at);
	/* Most are addresses of stacks, of which a command reads millions. */
	digits = *at;
	for (count = 0; count <= DIGITS_SAFE && (unsigned char)(digits[count] - '0') < 10; count++)
		value = value * 10 + (uint64_t)(digits[count] - '0');
	if (count && count <= DIGITS_SAFE && (count == 1 || *digits != '0')) {
		*number = value;
		*at += count;
		return true;
	}
	digits = *at + (**at == '-');
	count = strspn(digits, "0123456789");
	errno = 0;
	*number = strtoull(*at, NULL, 10);
	if (!count || (*digits == '0' && count > 1) || errno || (**at == '-' && (int64_t)*number > 0))
		return false;
	*at = digits + count;
	return true;
}

/* Takes the \uXXXX at `*at`. False: there is none. */
static bool parse_unit(const char **at, unsigned *unit)
{
	char digits[5] = "";

	if ((*at)[0] != '\\' || (*at)[1] != 'u')
		return false;
	strncpy(digits, *at + 2, 4);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return false;
	*unit = (unsigned)strtoul(digits, NULL, 16);
	*at += 6;
	return true;
}

/* From a backslash on; NULL: not an escape. Half of a pair, and a zero, are invalid characters. */
static char *parse_escape(const char **at, char *to)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *letter = (*at)[1] ? strchr(letters, (*at)[1]) : NULL, *behind;
	unsigned code, low;

	if (letter) {
		*to = meant[letter - letters];
		*at += 2;
		return to + 1;
	}
	if (!parse_unit(at, &code))
		return NULL;
	behind = *at;
	if (code >> 10 == 0x36 && parse_unit(&behind, &low) && low >> 10 == 0x37) {
		code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
		*at = behind;
	}
	return to + text_put_character(to, !code || code >> 11 == 0x1b ? NO_CHARACTER : code);
}

char *json_read_text(const char **at, char **room)
{
	const char *next = *at;
	char *text = *room, *to = text;

	if (!json_read(&next, '"'))
		return NULL;
	while (*next != '"') {
		if ((unsigned char)*next < 0x20) /* also the end */
			return NULL;
		if (*next != '\\')
			*to++ = *next++;
		else if (!(to = parse_escape(&next, to)))
			return NULL;
	}
	*at = next + 1;
	*to++ = 0;
	*room = to;
	return text;
}
