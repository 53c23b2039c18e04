/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that shows a trace file in a browser, and its data. `queryprof live` serves both, `report --html`
 * writes them to one file. The data are a JSON object with an array for each part of the page: the rows of a
 * file in sql/page.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What the data omit. */
struct page_options {
	bool no_text;  /* texts of statements, and the names in them */
	bool no_paths; /* folders */
	bool is_plan;  /* not omitted: the page opens at the costliest statement */
};

/* The data of the selected runs in a file that cmd/file/selection.h has opened. Malloc'ed; NULL after a
 * complaint. */
char *page_data(sqlite3 *db, const char *path, const struct page_options *options);

/* Appends `"name":[rows]` for each statement of `sql` that returns rows to stdout. A command_result. */
int page_print_rows(sqlite3 *db, const char *name, const char *sql, const struct page_options *options);

/* Whether this build contains the page; complains if not. */
bool page_is_there(const char *command);

/* Writes the page with these data; NULL: without data, for a page that asks its server. */
void page_write(FILE *to, const char *data);

/* The page's own Content-Security-Policy, which permits only its script and its style, by their hashes.
 * Malloc'ed; NULL: no memory. */
char *page_policy(void);
