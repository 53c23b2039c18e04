/*
 * One transaction a batch. Records are decoded and interned while the ring is read;
 * the samples' own rows come at the end, in the order of time, which is the order
 * of their table. Whatever fails, the whole batch is rolled back and counted as
 * lost, and everything known of the file is forgotten.
 */
#include <stdlib.h>

#include "sampler/ring_reader.h"
#include "store/write/writer.h"

/* --- records ---------------------------------------------------------------------- */

/* Room in the file that a row takes, about; for the bounds of a batch. */
#define SAMPLE_BYTES 40
#define QUERY_BYTES 300

static int take_sample(struct writer *writer, const struct sample_record *record, size_t size)
{
	struct pending_sample *sample = &writer->samples[writer->sample_count];
	int64_t row;

	if (size < sizeof *record || size - sizeof *record < record->depth * sizeof record->trace[0])
		return SQLITE_OK; /* not a sample; never written by our handler */
	*sample = (struct pending_sample){
		.timestamp_ns = (int64_t)record->timestamp_ns,
		.cpu_id = record->cpu_id,
		.weight = record->weight,
		.truncated = (record->flags & SAMPLE_TRUNCATED) || record->depth > TRACE_MAX_FRAMES,
		.span = UINT32_MAX,
	};
	sample->series = intern_series(writer, record);
	if (sample->series < 0)
		return (int)-sample->series;
	sample->stack = intern_stack(writer, record);
	if (sample->stack < 0)
		return (int)-sample->stack;
	if (record->query.hi || record->query.lo) {
		row = intern_query(writer, record->query, &sample->span);
		if (row < 0)
			return (int)-row;
	}
	writer->sample_count++;
	writer->bytes += SAMPLE_BYTES;
	return SQLITE_OK;
}

static void widen_span(struct writer *writer, uint32_t index, int64_t first_ns, int64_t last_ns)
{
	struct query_span *span;

	if (index >= writer->span_count)
		return;
	span = &writer->spans[index];
	if (first_ns < span->first_ns)
		span->first_ns = first_ns;
	if (last_ns > span->last_ns)
		span->last_ns = last_ns;
}

/* The texts of a query record. */
struct query_texts {
	const char *query_id, *query, *database, *exception, *library, *expanded;
};

static bool find_texts(const struct query_record *record, size_t size, struct query_texts *texts)
{
	uint64_t total = (uint64_t)record->query_id_size + record->query_size + record->database_size +
	                 record->exception_size + record->library_size + record->expanded_size;

	if (total > size - sizeof *record)
		return false;
	texts->query_id = record->text;
	texts->query = texts->query_id + record->query_id_size;
	texts->database = texts->query + record->query_size;
	texts->exception = texts->database + record->database_size;
	texts->library = texts->exception + record->exception_size;
	texts->expanded = texts->library + record->library_size;
	return true;
}

static int set_query_id(struct writer *writer, int64_t row, const struct query_record *record,
                        const struct query_texts *texts)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_QUERY_ID);

	sqlite3_bind_int64(statement, 1, row);
	writer_bind_text(statement, 2, texts->query_id, record->query_id_size);
	return writer_run(writer, WRITE_QUERY_ID);
}

/* Rows that a query's row names. */
struct query_rows {
	int64_t query, initial, text, library;
};

static int write_query(struct writer *writer, const struct query_rows *rows,
                       const struct query_record *record, const struct query_texts *texts)
{
	const uint64_t numbers[] = {
		record->result_rows,        record->vm_steps,
		record->fullscan_steps,     record->sorts,
		record->autoindexes,        record->memory_usage,
		record->samples[TRACE_CPU], record->samples[TRACE_REAL],
		record->weights[TRACE_CPU], record->weights[TRACE_REAL],
		record->samples_dropped,    record->samples_truncated,
		record->prepare_time_ns,    record->worker_cpu_time_ns,
		(uint64_t)rows->library,
	};
	sqlite3_stmt *statement = writer_statement(writer, WRITE_QUERY_END);

	sqlite3_bind_int64(statement, 1, rows->query);
	sqlite3_bind_int64(statement, 2, rows->initial);
	sqlite3_bind_int64(statement, 3, rows->text);
	sqlite3_bind_int64(statement, 4, (int64_t)record->start_realtime_ns);
	sqlite3_bind_int64(statement, 5, (int64_t)record->duration_ns);
	sqlite3_bind_int64(statement, 6, (int64_t)record->cpu_time_ns);
	writer_bind_text(statement, 7, texts->database, record->database_size);
	sqlite3_bind_int64(statement, 8, record->thread_id);
	sqlite3_bind_int64(statement, 9, record->exception_code);
	writer_bind_text(statement, 10, texts->exception, record->exception_size);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sqlite3_bind_int64(statement, 11 + (int)i, (int64_t)numbers[i]);
	writer_bind_text(statement, 26, texts->expanded, record->expanded_size);
	return writer_run(writer, WRITE_QUERY_END);
}

static int take_query(struct writer *writer, const struct query_record *record, size_t size)
{
	struct query_key first = record->initial;
	struct query_texts texts;
	struct query_rows rows;
	int64_t start, end;
	uint32_t span;
	int code;

	if (size < sizeof *record || !find_texts(record, size, &texts))
		return SQLITE_OK;
	start = (int64_t)record->start_realtime_ns;
	end = start + (int64_t)record->duration_ns;
	rows.query = rows.initial = intern_query(writer, record->query, &span);
	if (rows.query < 0)
		return (int)-rows.query;
	widen_span(writer, span, start, end);
	if ((first.hi || first.lo) && (first.hi != record->query.hi || first.lo != record->query.lo)) {
		rows.initial = intern_query(writer, first, &span);
		if (rows.initial < 0)
			return (int)-rows.initial;
		/* It runs still: its row is as young as ours. */
		widen_span(writer, span, start, end);
	}
	rows.text = intern_statement(writer, texts.query, record->query_size, record->flags & QUERY_TEXT_CUT);
	if (rows.text < 0)
		return (int)-rows.text;
	rows.library = intern_library(writer, texts.library, record->library_size);
	if (rows.library < 0)
		return (int)-rows.library;
	code = write_query(writer, &rows, record, &texts);
	if (!code && record->query_id_size)
		code = set_query_id(writer, rows.query, record, &texts);
	writer->query_count++;
	writer->bytes += QUERY_BYTES + record->database_size + record->exception_size + record->expanded_size;
	return code;
}

static int take_record(struct writer *writer, unsigned kind, const void *record, size_t size)
{
	switch (kind) {
	case RECORD_SAMPLE: return take_sample(writer, record, size);
	case RECORD_QUERY: return take_query(writer, record, size);
	default: writer_discard(writer, kind, record, size); return SQLITE_OK;
	}
}

void writer_discard(struct writer *writer, unsigned kind, const void *record, size_t size)
{
	if (kind == RECORD_THREAD && size >= sizeof(struct thread_record))
		intern_thread_name(writer, record);
}

/* --- samples in the order of time ------------------------------------------------ */

static int compare_samples(const void *left, const void *right)
{
	const struct pending_sample *a = left, *b = right;

	return (a->timestamp_ns > b->timestamp_ns) - (a->timestamp_ns < b->timestamp_ns);
}

/* They come nearly sorted, threads being interleaved as they are: insertion sort is
 * much the fastest then. With a limit, for when they do not. */
static void sort_samples(struct pending_sample *samples, size_t count)
{
	size_t moves = 0, most = 32 * count;

	for (size_t i = 1; i < count; i++) {
		struct pending_sample sample = samples[i];
		size_t at = i;

		for (; at && samples[at - 1].timestamp_ns > sample.timestamp_ns; at--)
			samples[at] = samples[at - 1];
		samples[at] = sample;
		moves += i - at;
		if (moves > most) {
			qsort(samples, count, sizeof *samples, compare_samples);
			return;
		}
	}
}

/* A free time near one that is taken: behind the last of the next few ns, or of a
 * wider range where those are full to the end. */
static int64_t find_free_time(struct writer *writer, int64_t timestamp_ns)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LAST_TIME);

	for (int64_t range = 64; range < INT64_MAX / 32; range *= 16) {
		int64_t last;

		sqlite3_bind_int64(statement, 1, timestamp_ns);
		sqlite3_bind_int64(statement, 2, timestamp_ns + range);
		last = writer_number(writer, WRITE_LAST_TIME);
		if (last + 1 < timestamp_ns + range)
			return last + 1;
	}
	return timestamp_ns;
}

/* The time is the key; a sample whose time is taken moves on by as little as there
 * is. */
static int insert_sample(struct writer *writer, struct pending_sample *sample)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_SAMPLE);
	const int64_t values[WRITER_SAMPLE_VALUES] = {
		sample->series, sample->span < writer->span_count ? writer->spans[sample->span].query : 0,
		sample->stack,  sample->cpu_id,
		sample->weight, sample->truncated,
	};
	int code;

	/* Most are those of the sample before. */
	for (int i = 0; i < WRITER_SAMPLE_VALUES; i++) {
		if (values[i] != writer->bound[i])
			sqlite3_bind_int64(statement, 2 + i, values[i]);
		writer->bound[i] = values[i];
	}
	sqlite3_bind_int64(statement, 1, sample->timestamp_ns);
	code = writer_run(writer, WRITE_SAMPLE);
	if (code != SQLITE_CONSTRAINT_PRIMARYKEY && code != SQLITE_CONSTRAINT_ROWID)
		return code;
	sample->timestamp_ns = find_free_time(writer, sample->timestamp_ns);
	sqlite3_bind_int64(statement, 1, sample->timestamp_ns);
	return writer_run(writer, WRITE_SAMPLE);
}

static int insert_samples(struct writer *writer)
{
	int64_t last = INT64_MIN;
	int code = SQLITE_OK;

	sort_samples(writer->samples, writer->sample_count);
	for (size_t i = 0; !code && i < writer->sample_count; i++) {
		struct pending_sample *sample = &writer->samples[i];

		if (sample->timestamp_ns <= last)
			sample->timestamp_ns = last + 1;
		code = insert_sample(writer, sample);
		last = sample->timestamp_ns;
		widen_span(writer, sample->span, last, last);
	}
	return code;
}

static int write_spans(struct writer *writer)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_QUERY_RANGE);
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < writer->span_count; i++) {
		const struct query_span *span = &writer->spans[i];

		if (span->first_ns > span->last_ns)
			continue;
		sqlite3_bind_int64(statement, 1, span->query);
		sqlite3_bind_int64(statement, 2, span->first_ns);
		sqlite3_bind_int64(statement, 3, span->last_ns);
		code = writer_run(writer, WRITE_QUERY_RANGE);
	}
	return code;
}

/* --- the transaction ------------------------------------------------------------------ */

static int begin(struct writer *writer)
{
	sqlite3_stmt *state = writer_statement(writer, WRITE_STATE);
	int64_t removals, identity;
	int code = writer_run(writer, WRITE_BEGIN);

	if (code)
		return code;
	code = sqlite3_step(state);
	if (code != SQLITE_ROW) {
		sqlite3_reset(state);
		writer_run(writer, WRITE_ROLLBACK);
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
	sqlite3_reset(state);
	writer->sample_count = writer->span_count = writer->query_count = writer->bytes = writer->rewritten =
		0;
	writer->batch++;
	return SQLITE_OK;
}

static int finish(struct writer *writer)
{
	int code = insert_samples(writer);

	if (!code)
		code = write_spans(writer);
	if (!code)
		code = writer_run(writer, WRITE_COMMIT);
	return code;
}

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
		if (result->records >= most_records || writer->bytes + writer->rewritten >= most_bytes) {
			result->more = true;
			break;
		}
		code = take_record(writer, kind, record, size);
		wanted += kind == RECORD_SAMPLE || kind == RECORD_QUERY;
		ring_consume(ring);
		result->records++;
	}
	if (!code)
		code = finish(writer);
	if (code) {
		writer_run(writer, WRITE_ROLLBACK);
		writer_forget(writer);
		result->lost = wanted;
		return code;
	}
	result->samples = writer->sample_count;
	result->queries = writer->query_count;
	result->lost = wanted - result->samples - result->queries;
	writer->epoch_bytes += (int64_t)writer->bytes;
	return SQLITE_OK;
}
