/*
 * A batch is small at first, for who wants the first row only, and grows to what makes
 * the change of threads cheap.
 */
#include "store/read/rows.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_FIRST 4
#define BATCH_GROWTH 4
#define BATCH_LAST 256
#define BATCH_BYTES (64 * 1024)

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

void rows_begin(struct rows *rows)
{
	rows->columns = rows->count = rows->next = rows->batch = 0;
	rows->size = 0;
}

/* Room for one more row; of bytes, for `size` more. */
static bool make_room(struct rows *rows, size_t size)
{
	size_t cells = (size_t)(rows->count + 1) * rows->columns;

	if (cells > rows->cell_room) {
		struct cell *larger = realloc(rows->cells, 2 * cells * sizeof *larger);

		if (!larger)
			return false;
		rows->cells = larger;
		rows->cell_room = 2 * cells;
	}
	if (rows->size + size > rows->room) {
		size_t room = 2 * (rows->size + size) + 1024;
		char *larger = realloc(rows->bytes, room);

		if (!larger)
			return false;
		rows->bytes = larger;
		rows->room = room;
	}
	return true;
}

static bool copy_cell(struct rows *rows, sqlite3_stmt *statement, int column)
{
	struct cell *cell = &rows->cells[(size_t)rows->count * rows->columns + (unsigned)column];
	const void *bytes;
	size_t size;

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
	size = (size_t)sqlite3_column_bytes(statement, column);
	if (!make_room(rows, size + 1) || (size && !bytes))
		return false;
	cell = &rows->cells[(size_t)rows->count * rows->columns + (unsigned)column];
	cell->bytes.start = rows->size;
	cell->bytes.size = size;
	if (size)
		memcpy(rows->bytes + rows->size, bytes, size);
	rows->bytes[rows->size + size] = '\0';
	rows->size += size + 1;
	return true;
}

static bool copy_row(struct rows *rows, sqlite3_stmt *statement)
{
	if (!make_room(rows, 0))
		return false;
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
	rows->size = 0;
	while (rows->count < rows->batch && rows->size < BATCH_BYTES) {
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

/* A column that is not there is NULL, as it is to SQLite. */
static const struct cell *find_cell(const struct rows *rows, int column)
{
	static const struct cell null = { .type = STORE_NULL };

	if (!rows->next || column < 0 || (unsigned)column >= rows->columns)
		return &null;
	return &rows->cells[(size_t)(rows->next - 1) * rows->columns + (unsigned)column];
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
	default: return strtoll(rows->bytes + cell->bytes.start, NULL, 10);
	}
}

double rows_double(const struct rows *rows, int column)
{
	const struct cell *cell = find_cell(rows, column);

	switch (cell->type) {
	case STORE_INT64: return (double)cell->integer;
	case STORE_DOUBLE: return cell->real;
	case STORE_NULL: return 0;
	default: return strtod(rows->bytes + cell->bytes.start, NULL);
	}
}

const char *rows_text(struct rows *rows, int column, size_t *size)
{
	const struct cell *cell = find_cell(rows, column);

	*size = 0;
	switch (cell->type) {
	case STORE_NULL: return NULL;
	case STORE_INT64:
		sqlite3_snprintf(sizeof rows->number, rows->number, "%lld", (long long)cell->integer);
		break;
	case STORE_DOUBLE: sqlite3_snprintf(sizeof rows->number, rows->number, "%!.15g", cell->real); break;
	default: *size = cell->bytes.size; return rows->bytes + cell->bytes.start;
	}
	*size = strlen(rows->number);
	return rows->number;
}

void rows_free(struct rows *rows)
{
	free(rows->cells);
	free(rows->bytes);
	*rows = (struct rows){ .cells = NULL };
}
