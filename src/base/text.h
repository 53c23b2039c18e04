/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts made and written.
 */
#ifndef QUERYPROF_BASE_TEXT_H
#define QUERYPROF_BASE_TEXT_H

#include <stdio.h>

/* As printf; malloc'ed, NULL without memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes what stands between the quotes of a JSON string. Characters of `also` are written
 * as \u…, too, as control characters are. */
void text_write_json(FILE *out, const char *text, const char *also);

#endif
