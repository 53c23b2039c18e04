/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON, read and written. A text is written with the required escapes for ASCII controls, quotes and
 * backslashes; other characters that a terminal would obey are written as \u…, and a byte that is not
 * UTF-8 as U+FFFD. Texts end in a zero, so a \u0000 is read as U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes a string, with its quotes. The characters of `also` are written as \u…, too. */
void json_write_text(FILE *out, const char *text, const char *also);

/* The same without the quotes, for a string of several parts. */
void json_write_part(FILE *out, const char *text, const char *also);

/* Writes `size` bytes of JSON that was made elsewhere, and in it the characters that only strings can have
 * as they are in ours. */
void json_write_made(FILE *out, const char *json, size_t size);

/* Puts a string of `size` bytes, with its quotes, and no zero after it. Returns its end. */
#define JSON_TEXT_MAX(size) (6 * (size) + 2)
char *json_put_text(char *to, const char *text, size_t size);

/* These functions skip white space, and advance `at` past the value. False, NULL: it is something else. */
bool json_read(const char **at, char c);
bool json_read_null(const char **at);

/* -2^63 to 2^64 - 1: a negative number is the one with the same 64 bits. */
bool json_read_integer(const char **at, uint64_t *number);

/* The text goes to `*room`, which moves to its end. Room for all strings of a text: its size. */
char *json_read_text(const char **at, char **room);
