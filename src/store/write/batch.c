/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One transaction a batch. The flusher decodes and interns records while it reads the
 * ring; it writes the samples' own rows at the end, in the order of time, which is the
 * order of their table. On any error it rolls the batch back, counts it as lost, and
 * forgets all rows that it knew. The ring keeps the records until then: a process that is
 * killed meanwhile has them there (recovery.c).
 */
#include <string.h>

#include "base/text.h"
#include "query/statement_stats.h"
#include "sampler/ring_reader.h"
#include "store/write/batch.h"
#include "store/write/delays.h"
#include "store/write/foreign_spans.h"
#include "store/write/intern.h"
#include "store/write/labels.h"
#include "store/write/programs.h"
#include "store/write/running.h"
#include "store/write/lock_waits.h"
#include "store/write/sample_rows.h"
#include "store/write/spans.h"
#include "store/write/statements.h"

/* --- records ---------------------------------------------------------------------- */

/* Room in the file that a query's rows take, about; for the bounds of a batch. */
#define QUERY_BYTES 300

/* The texts of a query record. */
struct query_texts {
	struct text {
		const char *bytes;
		size_t size;
	} query_id, query, database, exception, library, expanded;
};

static bool find_texts(const struct query_record *record, size_t size, struct query_texts *texts)
{
	uint64_t total = (uint64_t)record->query_id_size + record->query_size + record->database_size +
	                 record->exception_size + record->library_size + record->expanded_size;
	const char *at = record->text;

	if (total > size - sizeof *record)
		return false;
	texts->query_id = (struct text){ at, record->query_id_size };
	texts->query = (struct text){ at += record->query_id_size, record->query_size };
	texts->database = (struct text){ at += record->query_size, record->database_size };
	texts->exception = (struct text){ at += record->database_size, record->exception_size };
	texts->library = (struct text){ at += record->exception_size, record->library_size };
	texts->expanded = (struct text){ at += record->library_size, record->expanded_size };
	return true;
}

static int set_query_id(struct writer *writer, int64_t row, const struct query_texts *texts)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_QUERY_ID);

	sqlite3_bind_int64(statement, 1, row);
	writer_bind_text(statement, 2, texts->query_id.bytes, texts->query_id.size);
	return writer_run(writer, WRITE_QUERY_ID);
}

/* Rows that a query's row names. */
struct query_rows {
	int64_t query, initial, parent, statement, library, labels, context;
};

static void bind_INTEGER(sqlite3_stmt *statement, int index, int64_t number)
{
	sqlite3_bind_int64(statement, index, number);
}

static void bind_TEXT(sqlite3_stmt *statement, int index, struct text text)
{
	writer_bind_text(statement, index, text.bytes, text.size);
}

#define BIND_STORED(name, type, definition, flags, value) bind_##type(statement, ++index, value);
#define BIND_FILED(name, type, definition, value) bind_##type(statement, ++index, value);

static int write_query(struct writer *writer, const struct query_rows *rows,
                       const struct query_record *record, const struct query_texts *texts)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_QUERY_END);
	int index = 0;

	QUERY_LOG_COLUMNS(BIND_STORED, BIND_FILED, WRITER_NOTHING)
	sqlite3_bind_int64(statement, ++index, rows->query);
	return writer_run(writer, WRITE_QUERY_END);
}

/* When the query whose record came is known to have run. */
struct stretch {
	int64_t first_ns, last_ns;
};

/* The row of a query around it, `otherwise` where there is none. That one runs still, so its
 * row is as young as the record. */
static int64_t find_outer_query(struct writer *writer, struct query_key query, const struct stretch *stretch,
                                struct query_key key, int64_t otherwise)
{
	uint32_t span;
	int64_t row;

	if ((!key.hi && !key.lo) || (key.hi == query.hi && key.lo == query.lo))
		return otherwise;
	row = intern_query(writer, key, &span);
	if (row > 0)
		writer_widen_span(writer, span, stretch->first_ns, stretch->last_ns);
	return row;
}

/* The rows of the query and of those around it. SQLITE_OK or the error. */
static int find_queries(struct writer *writer, struct query_key query, struct query_key initial,
                        struct query_key parent, const struct stretch *stretch, struct query_rows *rows)
{
	uint32_t span;

	rows->query = intern_query(writer, query, &span);
	if (rows->query < 0)
		return (int)-rows->query;
	writer_widen_span(writer, span, stretch->first_ns, stretch->last_ns);
	rows->initial = find_outer_query(writer, query, stretch, initial, rows->query);
	if (rows->initial < 0)
		return (int)-rows->initial;
	rows->parent = find_outer_query(writer, query, stretch, parent, 0);
	return rows->parent < 0 ? (int)-rows->parent : SQLITE_OK;
}

/* The text that the start told may be another than the end's: cut, or a script that was being
 * prepared. */
static int leave_first_statement(struct writer *writer, struct query_key query, int64_t statement)
{
	struct known_query *known = intern_known_query(writer, query);
	int64_t first = known ? known->statement : 0;

	if (known)
		known->statement = 0;
	if (!first || first == statement)
		return SQLITE_OK;
	sqlite3_bind_int64(writer_statement(writer, WRITE_UNUSED_STATEMENT), 1, first);
	return writer_run(writer, WRITE_UNUSED_STATEMENT);
}

/* A query of the profiler's own has no statement, so that its row is not shown. */
static int64_t find_first_statement(struct writer *writer, const struct start_record *record)
{
	bool is_cut = record->text_size == START_TEXT_MAX;

	if (record->run.state == START_KEPT)
		return 0;
	return intern_statement(writer, record->text,
	                        is_cut ? text_cut(record->text, START_TEXT_MAX - 1) : record->text_size,
	                        is_cut, false, 0);
}

static int take_start(struct writer *writer, const struct start_record *record, size_t size)
{
	sqlite3_stmt *update = writer_statement(writer, WRITE_QUERY_START);
	const struct stretch stretch = { (int64_t)record->run.realtime_ns, (int64_t)record->run.realtime_ns };
	struct known_query *known;
	struct query_rows rows;
	int code;

	if (size < sizeof *record || record->text_size > size - sizeof *record)
		return SQLITE_OK;
	code = find_queries(writer, record->query, record->run.initial, record->run.parent, &stretch, &rows);
	if (code)
		return code;
	rows.statement = find_first_statement(writer, record);
	if (rows.statement < 0)
		return (int)-rows.statement;
	sqlite3_bind_int64(update, 1, rows.query);
	sqlite3_bind_int64(update, 2, rows.initial);
	sqlite3_bind_int64(update, 3, rows.parent);
	sqlite3_bind_int64(update, 4, rows.statement);
	sqlite3_bind_int64(update, 5, stretch.first_ns);
	sqlite3_bind_int64(update, 6, record->run.thread_id);
	sqlite3_bind_int64(update, 7, writer->stored_batch);
	code = writer_run(writer, WRITE_QUERY_START);
	if (!code)
		code = leave_first_statement(writer, record->query, rows.statement);
	known = intern_known_query(writer, record->query);
	if (known)
		known->statement = rows.statement;
	if (rows.statement)
		running_started(writer, record->query, rows.query);
	else
		running_ended(writer, rows.query);
	return code;
}

/* What its samples have told, if there are some, has the trampolines, too. */
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

/* Room in a batch for the samples of a query's delays. */
static bool is_full(const struct writer *writer)
{
	return writer->sample_count + DELAYS > WRITER_BATCH;
}

static int take_delays(struct writer *writer, const struct query_record *record)
{
	union delay_sample sample;
	int code = SQLITE_OK;

	for (int kind = 0; !code && kind < DELAYS; kind++) {
		size_t size = delays_sample(&writer->delays, kind, record, &sample);

		if (!size)
			continue;
		code = sample_rows_take(writer, &sample.record, size);
		writer->delay_count += !code;
	}
	return code;
}

static int take_query(struct writer *writer, const struct query_record *record, size_t size)
{
	const struct stretch stretch = { (int64_t)record->start_realtime_ns,
		                         (int64_t)(record->start_realtime_ns + record->duration_ns) };
	struct query_texts texts;
	struct query_rows rows;
	int code;

	if (size < sizeof *record || !find_texts(record, size, &texts))
		return SQLITE_OK;
	code = find_queries(writer, record->query, record->initial, record->parent, &stretch, &rows);
	if (code)
		return code;
	running_ended(writer, rows.query);
	rows.statement = intern_statement(writer, texts.query.bytes, texts.query.size,
	                                  record->flags & QUERY_TEXT_CUT, true, 0);
	if (rows.statement < 0)
		return (int)-rows.statement;
	rows.library = intern_library(writer, texts.library.bytes, texts.library.size);
	if (rows.library < 0)
		return (int)-rows.library;
	code = find_labels(writer, record, &rows);
	if (!code)
		code = write_query(writer, &rows, record, &texts);
	if (!code)
		code = leave_first_statement(writer, record->query, rows.statement);
	if (!code && texts.query_id.size)
		code = set_query_id(writer, rows.query, &texts);
	if (!code)
		code = take_delays(writer, record);
	const struct foreign_names names = { rows.context, rows.statement, rows.labels };
	if (!code)
		code = foreign_spans_take(writer, record, &names, texts.query.bytes, texts.query.size);
	writer->query_count++;
	writer->bytes += QUERY_BYTES + texts.database.size + texts.exception.size + texts.expanded.size;
	return code;
}

/* Its row is made at once: when the process is gone, nobody else knows its name. */
static int take_thread(struct writer *writer, const struct thread_record *record, size_t size)
{
	int64_t row;

	if (size < sizeof *record)
		return SQLITE_OK;
	intern_thread_name(writer, record);
	row = intern_thread(writer, record->thread_id);
	return row < 0 ? (int)-row : SQLITE_OK;
}

static int take_record(struct writer *writer, unsigned kind, const void *record, size_t size)
{
	switch (kind) {
	case RECORD_SAMPLE: return sample_rows_take(writer, record, size);
	case RECORD_QUERY: return take_query(writer, record, size);
	case RECORD_START: return take_start(writer, record, size);
	case RECORD_THREAD: return take_thread(writer, record, size);
	case RECORD_STATEMENTS: return statements_write_record(writer, record, size);
	case RECORD_LABELS: return labels_take(writer, record, size);
	case RECORD_SPANS: return spans_take(writer, record, size);
	case RECORD_SPAN_SITE: spans_take_site(writer, record, size); return SQLITE_OK;
	case RECORD_PROGRAM: return programs_take(writer, record, size);
	case RECORD_PROGRAM_ROWS: return programs_take_rows(writer, record, size);
	case RECORD_TRANSACTION: return transactions_take(writer, record, size);
	case RECORD_LOCK_WAIT: return lock_waits_take(writer, record, size);
	default: return SQLITE_OK;
	}
}

bool writer_is_row(unsigned kind)
{
	return kind == RECORD_SAMPLE || kind == RECORD_QUERY;
}

void writer_discard(struct writer *writer, unsigned kind, const void *record, size_t size)
{
	if (kind == RECORD_THREAD && size >= sizeof(struct thread_record))
		intern_thread_name(writer, record);
	else if (kind == RECORD_SPAN_SITE)
		spans_take_site(writer, record, size);
}

/* --- the batch's own rows --------------------------------------------------------- */

static int write_spans(struct writer *writer)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_QUERY_RANGE);
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < writer->span_count; i++) {
		const struct query_span *span = &writer->spans[i];

		if (span->first_ns > span->last_ns)
			continue;
		const int64_t values[] = { span->query,
			                   span->first_ns,
			                   span->last_ns,
			                   span->samples[TRACE_CPU],
			                   span->samples[TRACE_REAL],
			                   span->weights[TRACE_CPU],
			                   span->weights[TRACE_REAL],
			                   span->cpu_time_ns,
			                   span->labels,
			                   span->context };
		for (int at = 0; at < (int)(sizeof values / sizeof *values); at++)
			sqlite3_bind_int64(statement, at + 1, values[at]);
		code = writer_run(writer, WRITE_QUERY_RANGE);
	}
	return code;
}

static int write_batch(struct writer *writer)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_BATCH);

	sqlite3_bind_int64(statement, 1, writer->stored_batch);
	sqlite3_bind_int64(statement, 2, writer->process);
	sqlite3_bind_int64(statement, 3, writer->process_newest);
	sqlite3_bind_int64(statement, 4, writer->sample_first);
	sqlite3_bind_int64(statement, 5, writer->sample_last);
	sqlite3_bind_int64(statement, 6, (int64_t)writer->sample_count);
	return writer_run(writer, WRITE_BATCH);
}

/* --- the transaction ------------------------------------------------------------------ */

static int begin(struct writer *writer)
{
	sqlite3_stmt *state = writer_statement(writer, WRITE_STATE);
	int64_t removals, identity;
	int code = writer_run(writer, WRITE_BEGIN);

	if (code) {
		writer_roll_back(writer);
		return code;
	}
	code = sqlite3_step(state);
	if (code != SQLITE_ROW) {
		sqlite3_reset(state);
		writer_roll_back(writer);
		return code == SQLITE_DONE ? SQLITE_CORRUPT : code;
	}
	removals = sqlite3_column_int64(state, 0);
	identity = sqlite3_column_int64(state, 2);
	if (removals != writer->removals || identity != writer->file_identity) {
		writer_forget(writer);
		writer->removals = removals;
		writer->file_identity = identity;
	}
	if (writer->epoch != sqlite3_column_int64(state, 1)) {
		writer->epoch = sqlite3_column_int64(state, 1);
		writer->epoch_bytes = 0;
		writer->last.series = 0; /* to be marked as used in the new one */
	}
	writer->stored_batch = sqlite3_column_int64(state, 3) + 1;
	sqlite3_reset(state);
	writer->sample_first = writer->sample_last = 0;
	writer->sample_count = writer->delay_count = writer->span_count = writer->query_count =
		writer->bytes = writer->rewritten = writer->fields_skipped = writer->spans_stored =
			writer->running.count = 0;
	span_rows_clear(writer);
	writer->batch++;
	return SQLITE_OK;
}

static int finish(struct writer *writer, struct ring *ring)
{
	int code = sample_rows_insert(writer);

	if (!code)
		code = span_rows_write(writer);
	if (!code)
		code = write_spans(writer);
	if (!code)
		code = running_write(writer);
	if (!code && writer->span_count) /* else there is nothing new for those who follow the file */
		code = write_batch(writer);
	ring_announce(ring, (uint64_t)writer->stored_batch);
	if (!code)
		code = statements_write(writer);
	if (!code)
		code = writer_run(writer, WRITE_COMMIT);
	return code;
}

/* What a batch takes from the ring has its room until the batch is stored. */
#define RING_SHARE 4

int writer_store(struct writer *writer, struct ring *ring, size_t most_records, size_t most_bytes,
                 struct writer_result *result)
{
	size_t wanted = 0; /* records that would be rows */
	void *record;
	unsigned kind;
	size_t size;
	int code;

	*result = (struct writer_result){ .records = 0 };
	if (!ring_peek(ring, &kind, &size))
		return SQLITE_OK;
	code = begin(writer);
	if (code) {
		result->busy = (code & 0xff) == SQLITE_BUSY;
		return code;
	}
	if (most_records > WRITER_BATCH)
		most_records = WRITER_BATCH;
	while (!code && (record = ring_peek(ring, &kind, &size))) {
		if (result->records >= most_records || is_full(writer) ||
		    writer->bytes + writer->rewritten >= most_bytes ||
		    ring_passed(ring) >= ring_bytes(ring) / RING_SHARE) {
			result->more = true;
			break;
		}
		code = take_record(writer, kind, record, size);
		wanted += writer_is_row(kind);
		ring_pass(ring);
		result->records++;
	}
	if (!code)
		code = finish(writer, ring);
	statement_stats_settle(!code);
	ring_release(ring);
	if (code) {
		writer_roll_back(writer);
		writer_forget(writer);
		result->lost = wanted;
		result->spans_lost = writer->spans_stored;
		return code;
	}
	result->samples = writer->sample_count - writer->delay_count;
	result->queries = writer->query_count;
	result->spans = writer->spans_stored;
	result->fields_skipped = writer->fields_skipped;
	result->lost = wanted - result->samples - result->queries;
	writer->epoch_bytes += (int64_t)writer->bytes;
	return SQLITE_OK;
}

int writer_store_statements(struct writer *writer, const void *memory, size_t size)
{
	int code = begin(writer);

	if (code)
		return code;
	code = writer_end(writer, statements_write_remains(writer, memory, size));
	if (code)
		writer_forget(writer);
	return code;
}
