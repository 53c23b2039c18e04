/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as a table that fits the terminal.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

struct table_style {
	bool is_bare;      /* without its heading */
	bool cuts_middle;  /* text that does not fit loses its middle, not its end */
	bool hides_empty;  /* a column without any value is not shown */
	const char *spare; /* columns that are left out for want of room: SQL's names, the first one first */
	const char
		*paragraphs; /* columns of sentences, which go below the others in lines of words: as above */
	int folds_last;      /* so many of the last columns go below the others for want of room */
	/* For "ns" columns called x_ms, or ms, and cells as "1.0 ms" are shown as times with their
	 * units, "1.5 s"; for another unit such columns have its name; NULL: as they are. */
	const char *unit;
	const char *if_empty; /* line instead of a table without rows, or NULL */
};

/* Runs the statement to its end and prints its rows. SQLITE_DONE, or an error. */
int output_table(sqlite3_stmt *statement, const struct table_style *style);
