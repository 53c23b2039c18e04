/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a table of integers, read from the pages of its file: SQL takes six times as long for a row.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/* The number of the table's first page. 0: its rows can be read with SQL only, because the file has a log or
 * a writer (it is not open as immutable), or because a temporary view or table has the name. */
uint32_t table_pages_root(sqlite3 *db, const char *table);

#define TABLE_PAGES_COLUMNS_MAX 32

/* Calls `take` for the rows with these rowids, in their order, with the values of `count` columns, at most
 * TABLE_PAGES_COLUMNS_MAX, until it returns something else than SQLITE_OK. A column has the value 0 if its
 * name is NULL, or if the row was written before the table had it. Returns what `take` returned,
 * SQLITE_CORRUPT, or an error of memory or of reading. */
int table_pages_each(sqlite3 *db, const char *table, const char *const *columns, size_t count, int64_t first,
                     int64_t last, int (*take)(void *context, const int64_t *row), void *context);
