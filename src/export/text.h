/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes texts and numbers as the formats need them.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* Writes the text in JSON, with its quotation marks. The result contains no "<", so it can be part of a
 * script in an HTML page. */
static inline void export_write_text(FILE *out, const char *text)
{
	json_write_text(out, text, "<");
}

#define EXPORT_NUMBER_MAX 20 /* characters */

/* Puts the text, then the number, and returns the end. Tables have millions of rows, so a row is put together
 * in an array and written by one call: fprintf(), or a call for each number, would take most of the time. */
static inline char *export_put_number(char *to, const char *before, int64_t number)
{
	char digits[EXPORT_NUMBER_MAX], *at = digits + sizeof(digits);
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;

	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (number < 0)
		*--at = '-';
	return mempcpy(stpcpy(to, before), at, (size_t)(digits + sizeof(digits) - at));
}

/* Writes a row that was put together. */
static inline void export_write_row(FILE *out, const char *row, const char *end)
{
	fwrite_unlocked(row, 1, (size_t)(end - row), out);
}
