/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_format(const char *format, ...)
{
	va_list arguments;
	char *text;
	int size;

	va_start(arguments, format);
	size = vasprintf(&text, format, arguments);
	va_end(arguments);
	return size < 0 ? NULL : text;
}

size_t text_cut(const char *text, size_t size)
{
	while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}

size_t text_fit(const char *text, size_t most)
{
	return text ? text_cut(text, strnlen(text, most)) : 0;
}

const char *text_skip_comments(const char *sql)
{
	/* A letter is sorted after all skipped characters, and begins nearly every statement. */
	while (*sql <= ';') {
		sql += strspn(sql, " \t\n\f\r;");
		if (!strncmp(sql, "--", 2))
			sql += strcspn(sql, "\n");
		else if (!strncmp(sql, "/*", 2) && strstr(sql + 2, "*/"))
			sql = strstr(sql + 2, "*/") + 2;
		else
			break;
	}
	return sql;
}

size_t text_character_within(const char *text, size_t left)
{
	/* By the first byte: the length, and the range of the second byte, which excludes overlong
	 * forms, surrogates and codes beyond Unicode's end. */
	static const struct {
		unsigned char first, last, size, second_min, second_max;
	} kinds[] = {
		{ 0x01, 0x7f, 1, 0, 0 },       { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
		{ 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
		{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
	};
	const unsigned char *at = (const unsigned char *)text;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!left || *at < kinds[i].first || *at > kinds[i].last)
			continue;
		if (kinds[i].size > left)
			return 0;
		for (size_t j = 1; j < kinds[i].size; j++)
			if (at[j] < (j == 1 ? kinds[i].second_min : 0x80) ||
			    at[j] > (j == 1 ? kinds[i].second_max : 0xbf))
				return 0;
		return kinds[i].size;
	}
	return 0;
}

size_t text_character_size(const char *text)
{
	return text_character_within(text, SIZE_MAX); /* none continues after a zero */
}

/* The code point of a character of two or three bytes; 0: of any other size. */
static unsigned code_point(const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text;

	return size == 2   ? (at[0] & 31u) << 6 | (at[1] & 63u)
	       : size == 3 ? (at[0] & 15u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u)
	                   : 0;
}

/* Those of Unicode that change what a terminal does, or in which order it shows a line: C1, the
 * marks, embeddings, overrides and isolates of direction, and its own ends of lines. */
unsigned text_control(const char *text, size_t size)
{
	static const struct {
		unsigned first, last;
	} controls[] = { { 0x80, 0x9f },     { 0x61c, 0x61c },   { 0x200e, 0x200f },
		         { 0x2028, 0x202e }, { 0x2066, 0x2069 }, { 0xfeff, 0xfeff } };
	unsigned c = size > 1 ? code_point(text, size) : (unsigned char)*text;

	if (size == 1)
		return c < 0x20 || c == 0x7f ? c : 0;
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++)
		if (c >= controls[i].first && c <= controls[i].last)
			return c;
	return 0;
}

/* Nearly all characters are. */
static bool is_plain(char c)
{
	return c >= ' ' && c < 0x7f;
}

void text_blank_controls(char *text)
{
	while (is_plain(*text))
		text++;
	char *to = text;

	for (size_t size; *text; text += size) {
		size = text_character_size(text);
		if (!size || text_control(text, size)) {
			*to++ = ' ';
			size = size ? size : 1;
		} else {
			memmove(to, text, size);
			to += size;
		}
	}
	*to = 0;
}

char *text_repair(const char *text, size_t size)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char *repaired = malloc(size * 3 + 1), *to = repaired; /* one bad byte becomes three */
	const char *end = text + size;

	if (!repaired)
		return NULL;
	for (size_t step; text < end; text += step ? step : 1) {
		for (; text < end && is_plain(*text); text++)
			*to++ = *text;
		if (text == end)
			break;
		step = text_character_within(text, (size_t)(end - text));
		memcpy(to, step ? text : replacement, step ? step : 3);
		to += step ? step : 3;
	}
	*to = 0;
	return repaired;
}

size_t text_put_character(char *to, uint32_t character)
{
	static const unsigned char firsts[] = { 0, 0xc0, 0xe0, 0xf0 };

	if (character > 0x10ffff)
		character = 0xfffd;
	size_t more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
	to[0] = (char)(firsts[more] | character >> 6 * more);
	for (size_t i = 1; i <= more; i++)
		to[i] = (char)(0x80 | (character >> 6 * (more - i) & 0x3f));
	return more + 1;
}

bool text_has_word(const char *words, const char *word)
{
	const size_t size = strlen(word);

	for (size_t step; *(words += strspn(words, " ")); words += step) {
		step = strcspn(words, " ");
		if (step == size && !memcmp(words, word, size))
			return true;
	}
	return false;
}
