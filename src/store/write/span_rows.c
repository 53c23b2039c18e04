/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/span_rows.h"

#include <string.h>

#include "store/write/writer.h"
#include "wire/span_record.h"

const struct span_row_writer span_row_writer_new = {
	.sql = {
		.newest.sql = "SELECT max(id) FROM span_batches",
		/* OR FAIL: the writer rolls everything back on an error, and SQLite keeps
		 * less state. */
		.add_rows.sql = "INSERT OR FAIL INTO span_batches (" SPAN_ROW_COLUMNS ") SELECT " SPAN_ROW_COLUMNS
		                " FROM span_rows_to_write",
		.remove_notes.sql = "DELETE FROM span_notes WHERE batch IN (SELECT id FROM span_batches"
		                    " WHERE trace_lo = :trace_lo AND trace_hi = :trace_hi)"
		                    " AND batch NOT IN (SELECT batch FROM span_links)",
		.empty_newest.sql =
			"UPDATE span_batches SET count = 0, statements = 0, duration_ns = NULL, spans = '[]'"
			" WHERE id = (SELECT max(id) FROM span_batches)"
			" AND trace_lo = :trace_lo AND trace_hi = :trace_hi"
			" AND id NOT IN (SELECT batch FROM span_links) RETURNING id",
		.remove_trace.sql = "DELETE FROM span_batches WHERE id < (SELECT max(id) FROM span_batches)"
		                    " AND (trace_lo = :trace_lo AND trace_hi = :trace_hi"
		                    " AND id NOT IN (SELECT batch FROM span_links) OR id = :emptied AND spans = '[]')",
	},
};

void span_row_writer_free(struct span_row_writer *rows)
{
	vector_free(&rows->rows);
	vector_free(&rows->text);
}

static size_t count_rows(const void *rows)
{
	return (*(struct writer *const *)rows)->span_rows->rows.count;
}

static void read_value(const void *memory, const void *rows, size_t at, int column, sqlite3_context *result)
{
	const struct writer *writer = *(struct writer *const *)rows;
	const struct span_row *row = &writer->span_rows->rows.items[at];

	(void)memory;
	if (column == SPAN_ROW_NUMBERS)
		sqlite3_result_text(result, writer->span_rows->text.items + row->text, (int)row->text_size,
		                    SQLITE_STATIC);
	else if (column != SPAN_ROW_DURATION || row->numbers[column] >= 0)
		sqlite3_result_int64(result, row->numbers[column]);
}

const struct made_table span_rows_to_write = {
	.name = "span_rows_to_write",
	.columns = SPAN_ROW_COLUMNS,
	.rows_size = sizeof(struct writer *),
	.make = writer_rows,
	.count = count_rows,
	.read = read_value,
};

/* SQLite gives a row the number after the largest one. */
static int64_t find_newest(struct writer *writer)
{
	if (writer->span_rows->newest_row < 0)
		writer->span_rows->newest_row = writer_number(writer, &writer->span_rows->sql.newest);
	return writer->span_rows->newest_row;
}

int64_t span_rows_next(struct writer *writer)
{
	int64_t newest = find_newest(writer);

	return newest < 0 ? newest : newest + (int64_t)writer->span_rows->rows.count + 1;
}

int64_t span_rows_add(struct writer *writer, const int64_t numbers[SPAN_ROW_NUMBERS], size_t text)
{
	int64_t id = span_rows_next(writer);
	struct span_row *row;

	if (id < 0)
		return id;
	row = vector_add(&writer->span_rows->rows);
	if (!row)
		return -SQLITE_NOMEM;
	memcpy(row->numbers, numbers, sizeof(row->numbers));
	row->text = text;
	row->text_size = writer->span_rows->text.count - text;
	return id;
}

int span_rows_write(struct writer *writer)
{
	int code = writer->span_rows->rows.count ? writer_run(writer, &writer->span_rows->sql.add_rows)
	                                         : SQLITE_OK;

	span_rows_clear(writer);
	return code;
}

/* With more, the memory would leave the cache before it is written. */
#define TEXT_MAX (128u << 10)

int span_rows_bound(struct writer *writer)
{
	return writer->span_rows->text.count > TEXT_MAX ? span_rows_write(writer) : SQLITE_OK;
}

void span_rows_clear(struct writer *writer)
{
	writer->span_rows->rows.count = 0;
	writer->span_rows->text.count = 0;
	writer->span_rows->newest_row = -1;
}

static struct prepared *bind_trace(struct writer *writer, struct prepared *prepared,
                                   const struct span_link *trace)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_number(bind, "trace_lo", (int64_t)trace->trace_lo);
	bind_number(bind, "trace_hi", (int64_t)trace->trace_hi);
	return bind;
}

/* The newest row remains, without its spans, until there is a newer one. Otherwise another row would get its
 * number, which push has already sent. */
static int remove_rows(struct writer *writer, const struct span_link *trace)
{
	int64_t emptied =
		writer_number(writer, bind_trace(writer, &writer->span_rows->sql.empty_newest, trace));
	struct prepared *remove;

	if (emptied < 0)
		return (int)-emptied;
	remove = bind_trace(writer, &writer->span_rows->sql.remove_trace, trace);
	bind_number(remove, "emptied", writer->span_rows->emptied_row);
	if (emptied)
		writer->span_rows->emptied_row = emptied;
	return writer_run(writer, remove);
}

int span_rows_remove(struct writer *writer, const struct span_link *trace)
{
	int code = span_rows_write(writer);

	if (!code)
		code = writer_run(writer, bind_trace(writer, &writer->span_rows->sql.remove_notes, trace));
	return code ? code : remove_rows(writer, trace);
}
