/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/sample_source.h"

#include "store/write/queries.h"
#include "store/write/sample_rows.h"
#include "store/write/writer.h"

/* The columns of the table. */
#define COLUMN_STORED(name, type, definition, flags, value) COLUMN_##name,
#define COLUMN_FILED(name, type, definition, value) COLUMN_##name,
enum sample_column {
	COLUMN_timestamp_ns,
	TRACE_LOG_COLUMNS(COLUMN_STORED, COLUMN_FILED, WRITER_NOTHING, WRITER_NOTHING)
};

#define VALUE_STORED(name, type, definition, flags, value) VALUE_FILED(name, type, definition, value)
#define VALUE_FILED(name, type, definition, value)                                                           \
	case COLUMN_##name: return value;

static int64_t value_of(const struct writer *writer, const struct pending_sample *sample,
                        enum sample_column column)
{
	int64_t query = sample->span < writer->queries->spans.count
	                        ? writer->queries->spans.items[sample->span].rows.query
	                        : 0;

	switch (column) {
	case COLUMN_timestamp_ns:
		return sample->timestamp_ns;
		TRACE_LOG_COLUMNS(VALUE_STORED, VALUE_FILED, WRITER_NOTHING, WRITER_NOTHING)
	}
	return 0;
}

static size_t count_rows(const void *memory)
{
	const struct writer *writer = memory;

	return writer->samples->count - writer->samples->inserted;
}

/* The statement begins with the first row that is not there yet. */
static void read_value(void *memory, size_t row, int column, sqlite3_context *result)
{
	struct writer *writer = memory;
	size_t at = writer->samples->inserted + row;

	writer->samples->at = at;
	sqlite3_result_int64(result,
	                     value_of(writer, &writer->samples->pending[at], (enum sample_column)column));
}

const struct row_source sample_source = { "samples_to_write", SAMPLE_ROW_COLUMNS, count_rows, read_value };
