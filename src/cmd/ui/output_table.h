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
	bool hides_empty;  /* a column without values is not shown */
	const char *spare; /* columns to leave out if there is no room: SQL's names, in this order */
	const char
		*paragraphs; /* columns of sentences, printed below the others in lines of words: as above */
	int folds_last;      /* so many of the last columns go below the others if there is no room */
	/* "ns": columns called x_ms, or ms, and cells such as "1.0 ms" are shown as times with their units,
	 * "1.5 s". Another unit: such columns are named after it. NULL: unchanged. */
	const char *unit;
	const char *if_empty; /* line instead of a table without rows, or NULL */
};

/* Runs the statement to its end and prints its rows. SQLITE_DONE, or an error. */
int output_table(sqlite3_stmt *statement, const struct table_style *style);
