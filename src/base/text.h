/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts made and written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Formats like printf(); malloc'ed, NULL without memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How many of the first `size` bytes end with a whole UTF-8 character. Reads text[size]. */
size_t text_cut(const char *text, size_t size);

/* How many bytes of the text, NULL: none, are within `most` and end with a whole character. */
size_t text_fit(const char *text, size_t most);

/* Bytes of the UTF-8 character that begins here; 0: none does. The text ends in a zero, or after `left`
 * bytes. */
size_t text_character_within(const char *text, size_t left);
size_t text_character_size(const char *text);

/* Puts the character as UTF-8, U+FFFD for a number that is none. Returns its bytes, at most 4. */
size_t text_put_character(char *to, uint32_t character);

/* Whether SQLite has the byte inside a name or number. */
static inline bool text_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '$' || (unsigned char)c >= 0x80;
}

/* Whether it is one of these, which blanks separate. */
bool text_has_word(const char *words, const char *word);

/* The beginning of a statement's words: after white space, comments and semicolons. */
const char *text_skip_comments(const char *sql);

/* The code of the character of that many bytes if it drives a terminal instead of being shown: a
 * control character, or one that changes the order of its neighbours. 0: it does not. */
unsigned text_control(const char *text, size_t size);

/* Replaces each of those, and each invalid byte of UTF-8, by a blank. */
void text_blank_controls(char *text);

/* A copy (malloc'ed) that is valid UTF-8: each byte that is not becomes U+FFFD. NULL: no memory. */
char *text_repair(const char *text, size_t size);
