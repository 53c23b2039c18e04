/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/query_rows.h"

#include <string.h>

#include "base/text.h"
#include "collect/open_runs.h"
#include "query/inspect.h"
#include "store/write/call_stacks.h"
#include "store/write/foreign_spans.h"
#include "store/write/labels.h"
#include "store/write/sample_rows.h"
#include "store/write/spans.h"
#include "store/write/texts.h"
#include "store/write/threads.h"
#include "store/write/writer.h"

/* The approximate size of a query's rows in the file, for the limits of a batch. */
#define QUERY_BYTES 300

/* --- out of their records --------------------------------------------------------- */

static struct query_texts find_texts(const struct query_record *record)
{
	struct query_texts texts;
	const char *at = record->text;

	texts.query_id = (struct text){ at, record->query_id_size };
	texts.query = (struct text){ at += record->query_id_size, record->query_size };
	texts.database = (struct text){ at += record->query_size, record->database_size };
	texts.exception = (struct text){ at += record->database_size, record->exception_size };
	texts.library = (struct text){ at += record->exception_size, record->library_size };
	texts.call_stack = (struct text){ at += record->library_size, record->call_stack_size };
	texts.expanded = (struct text){ at += record->call_stack_size, record->expanded_size };
	return texts;
}

/* When the query of the record certainly ran. */
struct time_range {
	int64_t first_ns, last_ns;
};

/* The row of its enclosing query, or `otherwise`. That query still runs, so its row is as recent
 * as the record. */
static int64_t find_outer_query(struct writer *writer, struct query_key query, const struct time_range *times,
                                struct query_key key, int64_t otherwise)
{
	uint32_t entry;
	int64_t row;

	if ((!key.hi && !key.lo) || (key.hi == query.hi && key.lo == query.lo))
		return otherwise;
	row = intern_query(writer, key, &entry);
	if (row > 0)
		queries_widen(writer->queries, entry, times->first_ns, times->last_ns);
	return row;
}

/* The rows of the query and of its enclosing ones. SQLITE_OK or the error. */
static int find_queries(struct writer *writer, struct query_key query, struct query_key initial,
                        struct query_key parent, const struct time_range *times, struct query_rows *rows,
                        uint32_t *entry)
{
	rows->query = intern_query(writer, query, entry);
	if (rows->query < 0)
		return (int)-rows->query;
	queries_widen(writer->queries, *entry, times->first_ns, times->last_ns);
	rows->initial = find_outer_query(writer, query, times, initial, rows->query);
	if (rows->initial < 0)
		return (int)-rows->initial;
	rows->parent = find_outer_query(writer, query, times, parent, 0);
	return rows->parent < 0 ? (int)-rows->parent : SQLITE_OK;
}

int query_rows_add_start(struct writer *writer, const struct start_record *record)
{
	const int64_t began_ns = (int64_t)record->run.realtime_ns, seen_ns = (int64_t)record->open_until_ns;
	const struct time_range times = { began_ns, seen_ns > began_ns ? seen_ns : began_ns };
	struct query_rows rows = { .query = 0 };
	uint32_t at;
	int code;

	code = find_queries(writer, record->query, record->run.initial, record->run.parent, &times, &rows,
	                    &at);
	if (code)
		return code;
	struct batch_query *entry = &writer->queries->in_batch.items[at];
	if (entry->end)
		return SQLITE_OK;
	entry->rows = rows;
	/* A record by the flusher may lack the bytecode. */
	if (!entry->start || !record->open_until_ns)
		entry->start = record;
	if (record->open_until_ns)
		entry->seen_open = record;
	return SQLITE_OK;
}

/* The labels of its samples, if there are any, include those of the trampolines. */
static int find_labels(struct writer *writer, const struct query_record *record, struct query_rows *rows)
{
	const struct known_query *known = intern_known_query(writer, record->query);
	size_t from = record->labels[0] == 0, count = 2 - from - (record->labels[1] == 0);

	rows->labels =
		known && known->labels ? known->labels : labels_combine(writer, record->labels + from, count);
	rows->context =
		known && known->context ? known->context : labels_intern_context(writer, &record->context);
	return rows->labels < 0 ? (int)-rows->labels : rows->context < 0 ? (int)-rows->context : SQLITE_OK;
}

static int add_delays(struct writer *writer, const struct query_record *record)
{
	union delay_sample sample;
	int code = SQLITE_OK;

	for (int kind = 0; !code && kind < DELAYS; kind++) {
		size_t size = delays_sample(&writer->samples->delays, kind, record, &sample);

		if (!size)
			continue;
		code = sample_rows_add(writer, &sample.record, size);
		writer->samples->delay_count += !code;
	}
	return code;
}

int query_rows_add(struct writer *writer, const struct query_record *record)
{
	const struct time_range times = { (int64_t)record->start_realtime_ns,
		                          (int64_t)(record->start_realtime_ns + record->duration_ns) };
	const struct query_texts texts = find_texts(record);
	struct query_rows rows;
	uint32_t at;
	int code;

	code = find_queries(writer, record->query, record->initial, record->parent, &times, &rows, &at);
	if (code)
		return code;
	rows.statement = intern_statement(writer, texts.query.bytes, texts.query.size,
	                                  record->flags & QUERY_TEXT_CUT, true, 0);
	if (rows.statement < 0)
		return (int)-rows.statement;
	rows.library = intern_library(writer, texts.library.bytes, texts.library.size);
	if (rows.library < 0)
		return (int)-rows.library;
	rows.call_stack = intern_call_stack(writer, texts.call_stack.bytes, texts.call_stack.size);
	if (rows.call_stack < 0)
		return (int)-rows.call_stack;
	code = find_labels(writer, record, &rows);
	if (code)
		return code;
	struct batch_query *entry = &writer->queries->in_batch.items[at];
	entry->rows = rows;
	entry->end = record;
	entry->texts = texts;
	code = add_delays(writer, record);
	const struct foreign_names names = { rows.context, rows.statement, rows.labels };
	struct foreign_span foreign;
	if (!code && foreign_spans_make(writer, record, &names, texts.query.bytes, texts.query.size, &foreign,
	                                &code)) {
		code = spans_add(writer, &foreign, sizeof(foreign));
		if (!code)
			foreign_spans_keep(writer, &foreign, record->query);
	}
	writer->queries->ended++;
	writer->bytes += QUERY_BYTES + texts.database.size + texts.exception.size + texts.expanded.size;
	return code;
}

/* --- into their table ------------------------------------------------------------- */

#define bind_INTEGER bind_number

static void bind_TEXT(struct prepared *prepared, const char *name, struct text text)
{
	bind_text(prepared, name, text.bytes, text.size);
}

/* The text that an earlier batch stored may differ from `statement`: it was cut, or it was a script that was
 * being prepared. */
static void replace_first_statement(struct writer *writer, struct batch_query *entry, int64_t statement,
                                    int64_t next)
{
	struct known_query *known = intern_known_query(writer, entry->key);

	if (known && known->statement != statement)
		entry->left = known->statement;
	if (known)
		known->statement = next;
}

#define BIND(name, type, value) bind_##type(end, #name, value);

static int write_end(struct writer *writer, struct batch_query *entry)
{
	struct prepared *end = &writer->queries->sql.end;
	const struct query_record *record = entry->end;
	const struct query_texts *texts = &entry->texts;
	struct query_rows *rows = &entry->rows;
	char id[37];

	if (!rows->labels)
		rows->labels = entry->labels;
	if (!rows->context)
		rows->context = entry->context;
	query_key_text(entry->key, id);
	writer_bind(writer, end);
	bind_number(end, "id", rows->query);
	bind_TEXT(end, "query_id", texts->query_id.size ? texts->query_id : (struct text){ id, 36 });
	bind_number(end, "process", writer->threads->process);
	bind_number(end, "first_ns", entry->first_ns);
	bind_number(end, "last_ns", entry->last_ns);
	QUERY_COLUMNS(BIND)
	replace_first_statement(writer, entry, rows->statement, 0);
	return writer_run(writer, end);
}

/* A query of queryprof itself has no statement, so its row is hidden. */
static int64_t find_first_statement(struct writer *writer, const struct start_record *record)
{
	bool is_cut = record->text_size == START_TEXT_MAX;

	if (record->run.state == START_KEPT)
		return 0;
	return intern_statement(writer, record->text,
	                        is_cut ? text_cut(record->text, START_TEXT_MAX - 1) : record->text_size,
	                        is_cut, false, 0);
}

static int write_start(struct writer *writer, struct batch_query *entry)
{
	struct prepared *update = writer_bind(writer, &writer->queries->sql.start);
	const struct query_rows *rows = &entry->rows;
	const struct start_record *start = entry->start;

	bind_number(update, "initial", rows->initial);
	bind_number(update, "parent", rows->parent);
	bind_number(update, "statement", rows->statement);
	bind_number(update, "query_start_ns", (int64_t)start->run.realtime_ns);
	bind_number(update, "thread_id", start->run.thread_id);
	bind_number(update, "batch", writer->stored_batch);
	bind_number(update, "program", (int64_t)start->run.bytecode);
	bind_number(update, "id", rows->query);
	return writer_run(writer, update);
}

static int write_new(struct writer *writer, const struct batch_query *entry)
{
	struct prepared *add = writer_bind(writer, &writer->queries->sql.add);
	char id[37];

	query_key_text(entry->key, id);
	bind_number(add, "id", entry->rows.query);
	bind_text(add, "query_id", id, 36);
	bind_number(add, "process", writer->threads->process);
	bind_number(add, "session", query_key_session(entry->key));
	bind_number(add, "batch", writer->stored_batch);
	return writer_run(writer, add);
}

static int write_range(struct writer *writer, const struct batch_query *entry)
{
	struct prepared *update = writer_bind(writer, &writer->queries->sql.range);

	bind_number(update, "first_ns", entry->first_ns);
	bind_number(update, "last_ns", entry->last_ns);
	bind_number(update, "samples_cpu", entry->samples[SAMPLE_CPU]);
	bind_number(update, "samples_real", entry->samples[SAMPLE_REAL]);
	bind_number(update, "weight_cpu", entry->weights[SAMPLE_CPU]);
	bind_number(update, "weight_real", entry->weights[SAMPLE_REAL]);
	bind_number(update, "cpu_time_ns", entry->cpu_time_ns);
	if (entry->seen_open)
		bind_number(update, "outside_ns", (int64_t)entry->seen_open->outside_ns);
	else
		bind_null(update, "outside_ns");
	bind_number(update, "labels", entry->labels);
	bind_number(update, "context", entry->context);
	bind_number(update, "id", entry->rows.query);
	return writer_run(writer, update);
}

/* The time in its key, to the millisecond. */
static int64_t key_time_ns(struct query_key key)
{
	return (int64_t)((key.hi >> 16) * 1000000);
}

/* --- queries without an end ----------------------------------------------------------- */

/* The first sample published start and text, or the beginning of a long text. While the query runs, the
 * flusher reads the rest, in case it never ends. 0: all was published; negative: minus the error. */
static int64_t find_whole_text(struct writer *writer, const struct open_run_texts *texts)
{
	size_t size = texts->text && !texts->is_cut ? strlen(texts->text) : 0;

	return size >= START_TEXT_MAX ? intern_statement(writer, texts->text, size, false, false, 0) : 0;
}

/* Replaces the beginning of the text. */
static int replace_text(struct writer *writer, const struct batch_query *entry, int64_t statement)
{
	struct known_query *known = intern_known_query(writer, entry->key);

	if (!known || !entry->rows.statement || !statement)
		return SQLITE_OK;
	known->statement = statement;
	return intern_remove_unused(writer, entry->rows.statement);
}

static int write_texts(struct writer *writer, const struct batch_query *entry,
                       const struct open_run_texts *texts)
{
	struct prepared *update;
	int64_t library = 0, statement = find_whole_text(writer, texts);
	int code;

	if (texts->library)
		library = intern_library(writer, texts->library, strlen(texts->library));
	if (library < 0 || statement < 0)
		return (int)-(library < 0 ? library : statement);
	update = writer_bind(writer, &writer->queries->sql.running);
	bind_text(update, "database", texts->database ? texts->database : "", SIZE_MAX);
	bind_number(update, "library", library);
	bind_text(update, "query_id", texts->query_id ? texts->query_id : "", SIZE_MAX);
	bind_number(update, "statement", statement);
	bind_number(update, "id", entry->rows.query);
	code = writer_run(writer, update);
	return code ? code : replace_text(writer, entry, statement);
}

/* Writes the view of a query whose start is in the batch and whose end is not, if it still runs. SQLITE_OK or
 * the error. */
static int write_open(struct writer *writer, const struct batch_query *entry)
{
	struct query_view view = { .text = NULL };
	struct open_run_texts texts;
	bool is_open;
	int code;

	/* A query without a statement is hidden. */
	if (!entry->rows.statement || !entry->start->run.run)
		return SQLITE_OK;
	if (writer->other) {
		is_open = open_runs_find(writer->other->runs, entry->key, &texts);
	} else {
		is_open = query_inspect(entry->start->run.run, entry->key, &view);
		texts = (struct open_run_texts){ view.text, view.database, view.library, view.query_id,
			                         false };
	}
	code = is_open ? write_texts(writer, entry, &texts) : SQLITE_OK;
	if (!writer->other && is_open)
		query_view_free(&view);
	return code;
}

/* Whether the process itself stored the query, with the whole text; memory may have cut it. */
static bool is_stored(struct writer *writer, const struct batch_query *entry)
{
	return writer->other && entry->start->open_until_ns && !entry->is_new &&
	       writer_ask_sql(writer, "SELECT statement FROM queries WHERE id = ?1", entry->rows.query, 0) >
	               0;
}

/* A query that continues, or for which the batch has only samples, or only its name in a record
 * without a time, such as that of a run's loops. Without a time, its row would never be the oldest
 * one. */
static int write_running(struct writer *writer, struct batch_query *entry)
{
	int code = SQLITE_OK;

	if (entry->is_new && entry->first_ns > entry->last_ns)
		entry->first_ns = entry->last_ns = key_time_ns(entry->key);
	if (entry->is_new)
		code = write_new(writer, entry);
	if (!code && entry->start && !is_stored(writer, entry)) {
		entry->rows.statement = find_first_statement(writer, entry->start);
		if (entry->rows.statement < 0)
			return (int)-entry->rows.statement;
		code = write_start(writer, entry);
		replace_first_statement(writer, entry, entry->rows.statement, entry->rows.statement);
	}
	return code || entry->first_ns > entry->last_ns ? code : write_range(writer, entry);
}

int query_rows_write(struct writer *writer)
{
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < writer->queries->in_batch.count; i++) {
		struct batch_query *entry = &writer->queries->in_batch.items[i];

		code = entry->end ? write_end(writer, entry) : write_running(writer, entry);
	}
	/* After all rows, because another row may have the text that this row does not need. */
	for (size_t i = 0; !code && i < writer->queries->in_batch.count; i++) {
		const struct batch_query *entry = &writer->queries->in_batch.items[i];

		if (entry->left)
			code = intern_remove_unused(writer, entry->left);
		if (!code && entry->start && !entry->end)
			code = write_open(writer, entry);
	}
	return code;
}
