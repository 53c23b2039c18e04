/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/sample_rows.h"

#include <stdlib.h>

#include "base/search.h"

#define LATE_BYTES 16

COMPARE_BY(compare_samples, struct pending_sample, timestamp_ns)

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

#define VALUE_STORED(name, type, definition, flags, value) value,
#define VALUE_FILED(name, type, definition, value) value,

/* The time is the key; a sample whose time is taken moves on by as little as there
 * is. */
static int insert_sample(struct writer *writer, struct pending_sample *sample)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_SAMPLE);
	int64_t query = sample->span < writer->span_count ? writer->spans[sample->span].query : 0;
	const int64_t values[] = { TRACE_LOG_COLUMNS(VALUE_STORED, VALUE_FILED, WRITER_NOTHING,
		                                     WRITER_NOTHING) };
	int code;

	/* Most are those of the sample before. */
	for (int i = 0; i < WRITER_SAMPLE_VALUES; i++) {
		if (values[i] == writer->bound[i])
			continue;
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

/* Readers tell a batch's samples by the process and the range of time, without a column in
 * every sample; the samples for which that does not hold are named. */
static int insert_late_sample(struct writer *writer, int64_t timestamp_ns)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LATE_SAMPLE);

	sqlite3_bind_int64(statement, 1, timestamp_ns);
	sqlite3_bind_int64(statement, 2, writer->stored_batch);
	writer->bytes += LATE_BYTES;
	return writer_run(writer, WRITE_LATE_SAMPLE);
}

/* Read from the file each time: another copy of the library may write for this process. */
static int find_newest(struct writer *writer)
{
	sqlite3_bind_int64(writer_statement(writer, WRITE_NEWEST), 1, writer->process);
	writer->process_newest = writer_number(writer, WRITE_NEWEST);
	return writer->process_newest < 0 ? (int)-writer->process_newest : SQLITE_OK;
}

int sample_rows_insert(struct writer *writer)
{
	int64_t last = INT64_MIN;
	int code = find_newest(writer);

	sort_samples(writer->samples, writer->sample_count);
	for (size_t i = 0; !code && i < writer->sample_count; i++) {
		struct pending_sample *sample = &writer->samples[i];

		if (sample->timestamp_ns <= last)
			sample->timestamp_ns = last + 1;
		code = insert_sample(writer, sample);
		last = sample->timestamp_ns;
		if (!code && last <= writer->process_newest)
			code = insert_late_sample(writer, last);
		if (!i || last < writer->sample_first)
			writer->sample_first = last;
		if (!i || last > writer->sample_last)
			writer->sample_last = last;
		writer_widen_span(writer, sample->span, last, last);
	}
	return code;
}
