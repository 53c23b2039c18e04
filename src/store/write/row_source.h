/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual table that shows rows in memory, so that one statement writes all of them: a
 * statement a row would take the flusher twice as long.
 */
#ifndef QUERYPROF_STORE_WRITE_ROW_SOURCE_H
#define QUERYPROF_STORE_WRITE_ROW_SOURCE_H

#include <sqlite3.h>
#include <stddef.h>

struct row_source {
	const char *table;   /* its name */
	const char *columns; /* their names, with commas between */
	size_t (*count)(const void *memory);
	/* Sets the result to the value of a column; none set: NULL. */
	void (*read)(void *memory, size_t row, int column, sqlite3_context *result);
};

/* Makes the table. SQLITE_OK or the error. */
int row_source_open(sqlite3 *db, const struct row_source *source, void *memory);

#endif
