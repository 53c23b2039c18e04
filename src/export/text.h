/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts as the formats take them.
 */
#ifndef QUERYPROF_EXPORT_TEXT_H
#define QUERYPROF_EXPORT_TEXT_H

#include <stdio.h>

/* Writes the text in JSON, with its quotation marks. The result may stand in a script of
 * an HTML page, too: it contains no "<". */
void export_write_text(FILE *out, const char *text);

/* A copy (malloc'ed) that is valid UTF-8: each byte that is not becomes U+FFFD. NULL: no
 * memory. */
char *text_repair(const char *text);

#endif
