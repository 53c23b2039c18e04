/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a statement, copied because one thread makes them and another reads them.
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
	unsigned batch;                /* rows of the newest batch at most */
	char number[32];               /* one read as a text */
};

/* For a statement that begins. */
void rows_begin(struct rows *rows);

/* The next batch, larger each time. SQLITE_ROW: there may be more after it; SQLITE_DONE: there are
 * no more; otherwise an error, and the batch has the rows before it. */
int rows_fetch(struct rows *rows, sqlite3_stmt *statement);

/* Advances to the next row of the batch; false: there are no more. */
bool rows_advance(struct rows *rows);

/* Values of the row, as the store_column_...() of the same name. */
enum store_type rows_type(const struct rows *rows, int column);
int64_t rows_int64(const struct rows *rows, int column);
double rows_double(const struct rows *rows, int column);
const char *rows_text(struct rows *rows, int column, size_t *size);

void rows_free(struct rows *rows);
