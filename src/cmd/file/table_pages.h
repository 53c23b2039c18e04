/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers in the rows of a table, read from the pages of its file, because SQL takes six times as long
 * per row. If the file has a log or a writer (it is not open as immutable), or a temporary view or table has
 * the name, SQL reads them.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_PAGES_COLUMNS_MAX 63
#define TABLE_PAGES_NULL INT64_MIN

/* The rows and columns to read. */
struct table_rows {
	const char *table;
	const char *const *columns; /* the first is the rowid; NULL: not read, its value is 0 */
	size_t count;               /* number of columns, at most TABLE_PAGES_COLUMNS_MAX */
	int64_t first, last;        /* rowids */
	const int64_t *ids;         /* if not NULL: only these rows, in this order */
	size_t id_count;
};

/* Adds the functions that read rows to the connection. Call it while no statement is running. An SQLite
 * result. */
int table_pages_add(sqlite3 *db);

/* Calls `take` for the rows in the order of their rowids, with the values of the columns. Returns the first
 * result of `take` other than SQLITE_OK, SQLITE_CORRUPT, or an error of memory or reading; the connection has
 * the message. Texts are 0. */
int table_pages_each(sqlite3 *db, const struct table_rows *rows,
                     int (*take)(void *context, const int64_t *row), void *context);
