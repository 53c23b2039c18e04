/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the rows of a statement are printed.
 */
#ifndef QUERYPROF_CMD_UI_OUTPUT_H
#define QUERYPROF_CMD_UI_OUTPUT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON, OUTPUT_LINE };
#define OUTPUT_FORMATS "table, csv, json or line"

const char *output_format_at(size_t index); /* its name; NULL past the last */
/* The format of that name, a table if there is none. */
enum output_format output_format_find(const char *name);

/* The option that names a format. */
#define OUTPUT_FORMAT_OPTION(variable)                                                                       \
	{                                                                                                    \
		.name = "format", .value = "FORMAT", .help = OUTPUT_FORMATS "; table if not given",          \
		.to = (variable), .kind = OPTION_WORD, .word_at = output_format_at                           \
	}

struct output {
	enum output_format format;
	bool is_bare;      /* a table without its heading */
	bool cuts_middle;  /* text that does not fit loses its middle, not its end */
	bool hides_empty;  /* a column without any value is not shown */
	const char *spare; /* columns that are left out for want of room: SQL's names, the first one first */
	int folds_last;    /* so many of the last columns go below the others for want of room */
	/* For "ns" columns called x_ms, or ms, and cells as "1.0 ms" are shown as times with their
	 * units, "1.5 s"; for another unit such columns have its name; NULL: as they are.
	 * Tables only. */
	const char *unit;
	const char *doing;    /* shown as progress; NULL: "working" */
	const char *if_empty; /* line instead of a table without rows, or NULL */
};

/* Runs the statement to its end and prints its rows. An SQLite result. */
int output_rows(sqlite3_stmt *statement, const struct output *output);

/* Writes a cell of CSV between quotes: on a terminal without what drives it, in a file exactly. */
void output_csv_quoted(FILE *to, const char *text);

#endif
