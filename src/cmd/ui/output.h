/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the rows of a statement are printed.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>

#include "cmd/ui/output_table.h"

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON, OUTPUT_LINE };
#define OUTPUT_FORMATS "table, csv, json or line"

const char *output_format_at(size_t index); /* its name; NULL past the last */
/* The format with that name; a table if there is none. */
enum output_format output_format_find(const char *name);

/* The option that names a format. */
#define OUTPUT_FORMAT_OPTION(variable)                                                                       \
	COMMAND_WORD("format", "FORMAT", (variable), OUTPUT_FORMATS "; table if not given", output_format_at)

/* The same for commands that print text instead of a table. */
const char *output_text_format_at(size_t index);
bool output_is_text(const char *name);
#define OUTPUT_TEXT_FORMAT_OPTION(variable)                                                                  \
	COMMAND_WORD("format", "FORMAT", (variable), "text, csv, json or line; text if not given",           \
	             output_text_format_at)

struct output {
	enum output_format format;
	struct table_style table;
	const char *doing; /* shown as progress; NULL: "working" */
};

/* Runs the statement to its end and prints its rows. An SQLite result. */
int output_rows(sqlite3_stmt *statement, const struct output *output);

/* Writes a quoted cell of CSV: on a terminal without characters that control it, in a file exactly. */
void output_csv_quoted(FILE *to, const char *text);
