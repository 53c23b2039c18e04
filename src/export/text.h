/*
 * Texts in JSON.
 */
#ifndef QUERYPROF_EXPORT_TEXT_H
#define QUERYPROF_EXPORT_TEXT_H

#include <stdio.h>

/* With its quotation marks. What it writes can stand in a script of an HTML page,
 * too: it contains no "<". */
void text_write_json(FILE *out, const char *text);

#endif
