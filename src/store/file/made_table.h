/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual table whose rows are computed when a statement reads it. It serves sums that would be too slow in
 * SQL, and one statement that inserts all rows in memory. (One statement per row would take the flusher twice
 * as long.)
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct made_table {
	const char *name;  /* of the module */
	bool needs_create; /* by CREATE VIRTUAL TABLE; otherwise `name` is a table, unless the file has one */
	const char *columns; /* their declarations, separated by commas */
	size_t memory_size;  /* size of the data that a table keeps between scans, zeroed at first */
	size_t rows_size;    /* size of the data of a scan, zeroed at first */
	/* Called once or several times when a statement is prepared that reads these columns. NULL: not
	 * needed. */
	void (*ask)(void *data, void *memory, uint64_t used);
	/* Computes the rows of a scan. Bit i of `used`: the statement reads column i. An SQLite result.
	 * *error: its message, sqlite3_malloc'ed; NULL: the connection has the message. */
	int (*make)(sqlite3 *db, void *data, void *memory, void *rows, uint64_t used, char **error);
	size_t (*count)(const void *rows);
	/* Sets the result to a column's value. If it sets none, the value is NULL. */
	void (*read)(const void *memory, const void *rows, size_t row, int column, sqlite3_context *result);
	void (*free_rows)(void *rows); /* NULL: the rows contain no memory; likewise free_memory */
	void (*free_memory)(void *memory);
};

/* `data` is passed to ask() and make(). An SQLite result. */
int made_table_add(sqlite3 *db, const struct made_table *made, void *data);
