/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/export/spans.h"

#include "cmd/line/command.h"
#include "cmd/ui/progress.h"
#include "sql_export_spans.h"
#include "sql_span_texts.h"
#include "store/file/database.h"

static const char *text(sqlite3_stmt *row, int column)
{
	const char *found = (const char *)sqlite3_column_text(row, column);

	return found ? found : "";
}

struct export_span export_spans_read(sqlite3_stmt *row)
{
	return (struct export_span){
		.trace_id = text(row, 0),
		.span_id = text(row, 1),
		.parent_id = text(row, 2),
		.name = text(row, 3),
		.start_ns = sqlite3_column_int64(row, 4),
		.end_ns = sqlite3_column_int64(row, 5),
		.process_id = sqlite3_column_int64(row, 6),
		.thread_id = sqlite3_column_int64(row, 7),
		.thread_name = text(row, 8),
		.host = text(row, 9),
		.query_id = text(row, 10),
		.is_server = sqlite3_column_int(row, 11),
		.status = (unsigned)sqlite3_column_int(row, 12),
		.is_unended = sqlite3_column_int(row, 13),
		.attribute = text(row, 14),
		.otlp_attributes = text(row, 15),
		.otlp_events = text(row, 16),
		.file = text(row, 17),
		.line = sqlite3_column_int64(row, 18),
		.program = text(row, 19),
		.process = sqlite3_column_int64(row, 20),
	};
}

int64_t export_spans_first(sqlite3 *db)
{
	return database_number(
		db,
		"SELECT coalesce(min(ns), 0) FROM (SELECT min(timestamp_ns) AS ns FROM samples "
		"UNION ALL SELECT min(start_ns) FROM span_batches "
		"UNION ALL SELECT min(query_start_ns) FROM queries WHERE query_start_ns > 0)",
		0);
}

static int add_spans(sqlite3_stmt *rows, const char *path, const struct export_format *format, void *writer)
{
	int64_t count = 0;
	int code = SQLITE_DONE;
	bool is_fine = true;

	while (is_fine && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const struct export_span span = export_spans_read(rows);

		is_fine = format->add_span(writer, &span);
		progress_count(++count, "spans");
	}
	if (!is_fine)
		return complain("out of memory");
	return code == SQLITE_DONE ? COMMAND_FINE
	                           : complain("%s: %s", path, sqlite3_errmsg(sqlite3_db_handle(rows)));
}

int export_spans(sqlite3 *db, const char *path, const struct export_format *format, void *writer)
{
	sqlite3_stmt *rows = NULL;
	int result;

	if (sqlite3_exec(db, sql_span_texts, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, sql_export_spans, -1, &rows, NULL) != SQLITE_OK)
		return complain("%s: %s", path, sqlite3_errmsg(db));
	if (format->has_runs)
		sqlite3_bind_int(rows, sqlite3_bind_parameter_index(rows, ":with_runs"), 1);
	if (format->has_arrays)
		sqlite3_bind_int(rows, sqlite3_bind_parameter_index(rows, ":with_arrays"), 1);
	result = add_spans(rows, path, format, writer);
	sqlite3_finalize(rows);
	return result;
}
