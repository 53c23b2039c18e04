/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes texts and numbers as the formats need them.
 */
#pragma once

#include "base/json.h"

/* Writes the text in JSON, with its quotation marks. The result contains no "<", so it can be part of a
 * script in an HTML page. */
static inline void export_write_text(FILE *out, const char *text)
{
	json_write_text(out, text, "<");
}

/* Writes the text, then the number. Tables have millions of them, and fprintf() would take most of the
 * time. */
static inline void export_write_number(FILE *out, const char *before, int64_t number)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;

	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (number < 0)
		*--at = '-';
	fputs_unlocked(before, out);
	fwrite_unlocked(at, 1, (size_t)(digits + sizeof(digits) - at), out);
}
