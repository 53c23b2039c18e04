/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual table whose rows are made when a statement reads it: for what SQL alone would sum up too slowly,
 * and for one statement that writes all rows in memory. (A statement a row would take the flusher twice as
 * long.)
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct made_table {
	const char *name;  /* of the module */
	bool needs_create; /* by CREATE VIRTUAL TABLE; otherwise `name` is a table, unless the file has one */
	const char *columns; /* their declarations, with commas between */
	size_t memory_size;  /* of what a table keeps from one scan to the next, zeroed at first */
	size_t rows_size;    /* of what a scan keeps, zeroed at first */
	/* A statement is prepared that reads these columns; once or more often. NULL: nothing to do then. */
	void (*ask)(void *data, void *memory, uint64_t used);
	/* Makes the rows of a scan; bit i of `used`: the statement reads column i. An SQLite
	 * result. *error: its message, sqlite3_malloc'ed; NULL: that of the connection. */
	int (*make)(sqlite3 *db, void *data, void *memory, void *rows, uint64_t used, char **error);
	size_t (*count)(const void *rows);
	/* Sets the result to the value of a column; none set: NULL. */
	void (*read)(const void *memory, const void *rows, size_t row, int column, sqlite3_context *result);
	void (*free_rows)(void *rows); /* NULL: nothing is in them, and so below */
	void (*free_memory)(void *memory);
};

/* ask() and make() get `data`. An SQLite result. */
int made_table_add(sqlite3 *db, const struct made_table *made, void *data);
