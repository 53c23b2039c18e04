/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts as the formats take them.
 */
#ifndef QUERYPROF_EXPORT_TEXT_H
#define QUERYPROF_EXPORT_TEXT_H

#include "base/json.h"

/* Writes the text in JSON, with its quotation marks. The result may stand in a script of
 * an HTML page, too: it contains no "<". */
static inline void export_write_text(FILE *out, const char *text)
{
	json_write_text(out, text, "<");
}

#endif
