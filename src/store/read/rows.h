/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copied rows of a statement: one thread makes them, and another one reads them.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "store/read/column_type.h"

struct cell {
	enum store_type type;
	union {
		int64_t integer;
		double real;
		struct {
			size_t start, size; /* a zero follows */
		} bytes;
	};
};

struct rows {
	VECTOR(struct cell) cells;
	VECTOR(char) bytes;            /* of texts and blobs */
	unsigned columns, count, next; /* next: the row after the current one */
	unsigned batch;                /* the size limit of the newest batch, in rows */
	char number[32];               /* a number that was read as text */
};

/* Prepares for a new statement. */
void rows_begin(struct rows *rows);

/* Fetches the next batch; batches grow. SQLITE_ROW: there may be more rows; SQLITE_DONE: there are none;
 * otherwise an error, and the batch contains the rows before it. */
int rows_fetch(struct rows *rows, sqlite3_stmt *statement);

/* Advances to the next row of the batch; false: there are no more. */
bool rows_advance(struct rows *rows);

/* Values of the row, like the store_column_...() with that name. */
enum store_type rows_type(const struct rows *rows, int column);
int64_t rows_int64(const struct rows *rows, int column);
double rows_double(const struct rows *rows, int column);
const char *rows_text(struct rows *rows, int column, size_t *size);

void rows_free(struct rows *rows);
