/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/span_rows.h"

#include <string.h>

#include "store/write/writer.h"

/* --- the virtual table ----------------------------------------------------------------------- */

struct rows_table {
	sqlite3_vtab base;
	const struct writer *writer;
};

struct rows_cursor {
	sqlite3_vtab_cursor base;
	const struct writer *writer;
	size_t at;
};

static int connect_table(sqlite3 *db, void *writer, int argc, const char *const *argv, sqlite3_vtab **made,
                         char **error)
{
	struct rows_table *table = sqlite3_malloc(sizeof *table);

	(void)argc, (void)argv, (void)error;
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct rows_table){ .writer = writer };
	*made = &table->base;
	return sqlite3_declare_vtab(db, "CREATE TABLE rows (" SPAN_ROW_COLUMNS ")");
}

static int disconnect_table(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int plan_scan(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table, (void)info;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **made)
{
	struct rows_cursor *cursor = sqlite3_malloc(sizeof *cursor);

	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct rows_cursor){ .writer = ((struct rows_table *)table)->writer };
	*made = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int begin_scan(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                      sqlite3_value **argv)
{
	(void)number, (void)text, (void)argc, (void)argv;
	((struct rows_cursor *)cursor)->at = 0;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
	((struct rows_cursor *)cursor)->at++;
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
	const struct rows_cursor *rows = (const struct rows_cursor *)cursor;

	return rows->at >= rows->writer->span_rows.count;
}

static int read_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
	const struct rows_cursor *rows = (const struct rows_cursor *)cursor;
	const struct span_row *row = &rows->writer->span_rows.items[rows->at];

	if (column == SPAN_ROW_NUMBERS)
		sqlite3_result_text(context, rows->writer->span_text.items + row->text, (int)row->text_size,
		                    SQLITE_STATIC);
	else if (column != SPAN_ROW_DURATION || row->numbers[column] >= 0)
		sqlite3_result_int64(context, row->numbers[column]);
	return SQLITE_OK;
}

static int read_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
	*rowid = (sqlite3_int64)((struct rows_cursor *)cursor)->at;
	return SQLITE_OK;
}

int span_rows_open(struct writer *writer)
{
	static const sqlite3_module module = {
		.xConnect = connect_table,
		.xBestIndex = plan_scan,
		.xDisconnect = disconnect_table,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = begin_scan,
		.xNext = next_row,
		.xEof = is_at_end,
		.xColumn = read_column,
		.xRowid = read_rowid,
	};

	return sqlite3_create_module(writer->database.db, "span_rows_to_write", &module, writer);
}

/* --- the rows --------------------------------------------------------------------------------- */

/* SQLite gives a row the number behind the largest one. */
static int64_t find_newest(struct writer *writer)
{
	if (writer->newest_span_row < 0)
		writer->newest_span_row = writer_number(writer, WRITE_NEWEST_SPANS);
	return writer->newest_span_row;
}

int64_t span_rows_add(struct writer *writer, const int64_t numbers[SPAN_ROW_NUMBERS], size_t text)
{
	int64_t newest = find_newest(writer);
	struct span_row *row;

	if (newest < 0)
		return newest;
	row = vector_add(&writer->span_rows);
	if (!row)
		return -SQLITE_NOMEM;
	memcpy(row->numbers, numbers, sizeof row->numbers);
	row->text = text;
	row->text_size = writer->span_text.count - text;
	return newest + (int64_t)writer->span_rows.count;
}

int span_rows_write(struct writer *writer)
{
	int code = writer->span_rows.count ? writer_run(writer, WRITE_SPAN_ROWS) : SQLITE_OK;

	span_rows_clear(writer);
	return code;
}

/* Beyond it the memory would leave the cache before it is written. */
#define TEXT_MAX (128u << 10)

int span_rows_bound(struct writer *writer)
{
	return writer->span_text.count > TEXT_MAX ? span_rows_write(writer) : SQLITE_OK;
}

void span_rows_clear(struct writer *writer)
{
	writer->span_rows.count = 0;
	writer->span_text.count = 0;
	writer->newest_span_row = -1;
}
