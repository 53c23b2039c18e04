/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/span_rows.h"

#include <string.h>

#include "store/write/spans.h"
#include "store/write/writer.h"
#include "wire/span_record.h"

static size_t count_rows(const void *rows)
{
	return (*(struct writer *const *)rows)->spans->rows.count;
}

static void read_value(const void *memory, const void *rows, size_t at, int column, sqlite3_context *result)
{
	const struct writer *writer = *(struct writer *const *)rows;
	const struct span_row *row = &writer->spans->rows.items[at];

	(void)memory;
	if (column == SPAN_ROW_NUMBERS)
		sqlite3_result_text(result, writer->spans->text.items + row->text, (int)row->text_size,
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
	if (writer->spans->newest_row < 0)
		writer->spans->newest_row = writer_number(writer, &writer->spans->sql.newest);
	return writer->spans->newest_row;
}

int64_t span_rows_next(struct writer *writer)
{
	int64_t newest = find_newest(writer);

	return newest < 0 ? newest : newest + (int64_t)writer->spans->rows.count + 1;
}

int64_t span_rows_add(struct writer *writer, const int64_t numbers[SPAN_ROW_NUMBERS], size_t text)
{
	int64_t id = span_rows_next(writer);
	struct span_row *row;

	if (id < 0)
		return id;
	row = vector_add(&writer->spans->rows);
	if (!row)
		return -SQLITE_NOMEM;
	memcpy(row->numbers, numbers, sizeof(row->numbers));
	row->text = text;
	row->text_size = writer->spans->text.count - text;
	return id;
}

int span_rows_write(struct writer *writer)
{
	int code = writer->spans->rows.count ? writer_run(writer, &writer->spans->sql.add_rows) : SQLITE_OK;

	span_rows_clear(writer);
	return code;
}

/* Beyond it the memory would leave the cache before it is written. */
#define TEXT_MAX (128u << 10)

int span_rows_bound(struct writer *writer)
{
	return writer->spans->text.count > TEXT_MAX ? span_rows_write(writer) : SQLITE_OK;
}

void span_rows_clear(struct writer *writer)
{
	writer->spans->rows.count = 0;
	writer->spans->text.count = 0;
	writer->spans->newest_row = -1;
}

static struct prepared *bind_trace(struct writer *writer, struct prepared *prepared,
                                   const struct span_link *trace)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_number(bind, "trace_lo", (int64_t)trace->trace_lo);
	bind_number(bind, "trace_hi", (int64_t)trace->trace_hi);
	return bind;
}

/* The newest row remains, without its spans, until there is a newer one: otherwise another row
 * would get its number, which push has already sent. */
static int remove_rows(struct writer *writer, const struct span_link *trace)
{
	int64_t emptied = writer_number(writer, bind_trace(writer, &writer->spans->sql.empty_newest, trace));
	struct prepared *remove;

	if (emptied < 0)
		return (int)-emptied;
	remove = bind_trace(writer, &writer->spans->sql.remove_trace, trace);
	bind_number(remove, "emptied", writer->spans->emptied_row);
	if (emptied)
		writer->spans->emptied_row = emptied;
	return writer_run(writer, remove);
}

int span_rows_remove(struct writer *writer, const struct span_link *trace)
{
	int code = span_rows_write(writer);

	if (!code)
		code = writer_run(writer, bind_trace(writer, &writer->spans->sql.remove_notes, trace));
	return code ? code : remove_rows(writer, trace);
}
