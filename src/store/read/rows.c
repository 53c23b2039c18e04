/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches begin small, for statements from which only one row is read, and grow until switching threads costs
 * little.
 */
#include "store/read/rows.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_FIRST 4
#define BATCH_GROWTH 4
#define BATCH_LAST 256
#define BATCH_BYTES (64 * 1024)

void rows_begin(struct rows *rows)
{
	rows->columns = rows->count = rows->next = rows->batch = 0;
	rows->cells.count = rows->bytes.count = 0;
}

/* Copies the bytes and adds a zero. */
static bool copy_bytes(struct rows *rows, struct cell *cell, const void *bytes, size_t size)
{
	size_t start = rows->bytes.count;

	if ((size && !bytes) || !vector_reserve(&rows->bytes, start + size + 1))
		return false;
	if (size)
		memcpy(rows->bytes.items + start, bytes, size);
	rows->bytes.items[start + size] = '\0';
	rows->bytes.count = start + size + 1;
	cell->bytes.start = start;
	cell->bytes.size = size;
	return true;
}

static bool copy_cell(struct rows *rows, sqlite3_stmt *statement, int column)
{
	struct cell *cell = vector_add(&rows->cells);
	const void *bytes;

	if (!cell)
		return false;
	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_INTEGER:
		cell->type = STORE_INT64;
		cell->integer = sqlite3_column_int64(statement, column);
		return true;
	case SQLITE_FLOAT:
		cell->type = STORE_DOUBLE;
		cell->real = sqlite3_column_double(statement, column);
		return true;
	case SQLITE_TEXT:
		cell->type = STORE_TEXT;
		bytes = sqlite3_column_text(statement, column);
		break;
	case SQLITE_BLOB:
		cell->type = STORE_BLOB;
		bytes = sqlite3_column_blob(statement, column);
		break;
	default: cell->type = STORE_NULL; return true;
	}
	return copy_bytes(rows, cell, bytes, (size_t)sqlite3_column_bytes(statement, column));
}

static bool copy_row(struct rows *rows, sqlite3_stmt *statement)
{
	for (unsigned column = 0; column < rows->columns; column++)
		if (!copy_cell(rows, statement, (int)column))
			return false;
	rows->count++;
	return true;
}

int rows_fetch(struct rows *rows, sqlite3_stmt *statement)
{
	int code = SQLITE_ROW;

	rows->columns = (unsigned)sqlite3_column_count(statement);
	rows->batch = rows->batch ? rows->batch * BATCH_GROWTH : BATCH_FIRST;
	if (rows->batch > BATCH_LAST)
		rows->batch = BATCH_LAST;
	rows->count = rows->next = 0;
	rows->cells.count = rows->bytes.count = 0;
	while (rows->count < rows->batch && rows->bytes.count < BATCH_BYTES) {
		code = sqlite3_step(statement);
		if (code != SQLITE_ROW)
			return code;
		if (!copy_row(rows, statement))
			return SQLITE_NOMEM;
	}
	return code;
}

bool rows_advance(struct rows *rows)
{
	if (rows->next == rows->count)
		return false;
	rows->next++;
	return true;
}

/* A missing column is NULL, as in SQLite. */
static const struct cell *find_cell(const struct rows *rows, int column)
{
	static const struct cell null = { .type = STORE_NULL };

	if (!rows->next || column < 0 || (unsigned)column >= rows->columns)
		return &null;
	return &rows->cells.items[(size_t)(rows->next - 1) * rows->columns + (unsigned)column];
}

enum store_type rows_type(const struct rows *rows, int column)
{
	return find_cell(rows, column)->type;
}

int64_t rows_int64(const struct rows *rows, int column)
{
	const struct cell *cell = find_cell(rows, column);

	switch (cell->type) {
	case STORE_INT64: return cell->integer;
	case STORE_DOUBLE: return cell->real > -9.2e18 && cell->real < 9.2e18 ? (int64_t)cell->real : 0;
	case STORE_NULL: return 0;
	default: return strtoll(rows->bytes.items + cell->bytes.start, NULL, 10);
	}
}

double rows_double(const struct rows *rows, int column)
{
	const struct cell *cell = find_cell(rows, column);

	switch (cell->type) {
	case STORE_INT64: return (double)cell->integer;
	case STORE_DOUBLE: return cell->real;
	case STORE_NULL: return 0;
	default: return strtod(rows->bytes.items + cell->bytes.start, NULL);
	}
}

const char *rows_text(struct rows *rows, int column, size_t *size)
{
	const struct cell *cell = find_cell(rows, column);

	*size = 0;
	switch (cell->type) {
	case STORE_NULL: return NULL;
	case STORE_INT64:
		sqlite3_snprintf(sizeof(rows->number), rows->number, "%lld", (long long)cell->integer);
		break;
	case STORE_DOUBLE: sqlite3_snprintf(sizeof(rows->number), rows->number, "%!.15g", cell->real); break;
	default: *size = cell->bytes.size; return rows->bytes.items + cell->bytes.start;
	}
	*size = strlen(rows->number);
	return rows->number;
}

void rows_free(struct rows *rows)
{
	vector_free(&rows->cells);
	vector_free(&rows->bytes);
	*rows = (struct rows){ .count = 0 };
}
