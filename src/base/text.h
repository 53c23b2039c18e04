/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts made and written.
 */
#ifndef QUERYPROF_BASE_TEXT_H
#define QUERYPROF_BASE_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* As printf; malloc'ed, NULL without memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How many of the first `size` bytes end with a whole UTF-8 character. Reads text[size]. */
size_t text_cut(const char *text, size_t size);

/* Writes what stands between the quotes of a JSON string. Characters of `also` are written
 * as \u…, too, as control characters are. */
void text_write_json(FILE *out, const char *text, const char *also);

#endif
