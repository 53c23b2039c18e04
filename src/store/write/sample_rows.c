/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/sample_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "collect/sample_reader.h"
#include "store/write/intern.h"
#include "store/write/labels.h"

/* Room in the file that a row takes, about; for the bounds of a batch. */
#define SAMPLE_BYTES 40
#define LATE_BYTES 16

/* --- out of its record ------------------------------------------------------------ */

/* The optional fields of a sample, as far as this build knows them. */
struct sample_fields {
	bool has_value, has_context;
	int64_t value;
	const uint64_t *labels;
	size_t label_count;
	struct trace_context context;
	struct wait_field wait; /* zero: of none */
	uint64_t span;
	uint64_t opcode; /* 0: not known */
	uint32_t stretch;
	size_t skipped;
};

static struct sample_fields read_fields(const struct sample_record *record, size_t size)
{
	struct sample_fields fields = { .stretch = 1 };
	const void *at = record->trace + record->depth, *end = (const char *)record + size;
	const struct sample_field *field;

	for (uint32_t i = 0; i < record->fields && (field = sample_field_next(&at, end)); i++) {
		if (field->tag == FIELD_VALUE && field->size == sizeof fields.value) {
			fields.has_value = true;
			memcpy(&fields.value, field->content, sizeof fields.value);
		} else if (field->tag == FIELD_LABELS) {
			fields.labels = field->content;
			fields.label_count = field->size / sizeof *fields.labels;
		} else if (field->tag == FIELD_TRACE_CONTEXT && field->size == sizeof fields.context) {
			memcpy(&fields.context, field->content, sizeof fields.context);
			fields.has_context = true;
		} else if (field->tag == FIELD_WAIT && field->size == sizeof fields.wait) {
			memcpy(&fields.wait, field->content, sizeof fields.wait);
		} else if (field->tag == FIELD_SPAN && field->size == sizeof fields.span) {
			memcpy(&fields.span, field->content, sizeof fields.span);
		} else if (field->tag == FIELD_OPCODE && field->size == sizeof fields.opcode) {
			memcpy(&fields.opcode, field->content, sizeof fields.opcode);
		} else if (field->tag == FIELD_STRETCH && field->size == sizeof fields.stretch) {
			memcpy(&fields.stretch, field->content, sizeof fields.stretch);
		} else {
			fields.skipped++;
		}
	}
	return fields;
}

/* The value beyond weight × period. A sample that no timer took and that carries no
 * value counts what it stands for. */
static int64_t beyond_periods(const struct sample_record *record, const struct sample_fields *fields)
{
	const struct sample_type *type = sample_type_at(record->trace_type);
	bool is_timed = type && type->clock != SAMPLE_TYPE_NO_CLOCK;
	int64_t product, beyond;

	if (is_timed && !fields->has_value)
		return 0;
	if (__builtin_mul_overflow(record->weight, record->period_ns, &product) ||
	    __builtin_sub_overflow(fields->has_value ? fields->value : record->weight, product, &beyond))
		return 0;
	return beyond;
}

static void count_sample(struct writer *writer, uint32_t index, const struct sample_record *record)
{
	struct query_span *span;

	if (index >= writer->spans.count || record->trace_type >= TRACE_TYPES)
		return;
	span = &writer->spans.items[index];
	span->samples[record->trace_type]++;
	span->weights[record->trace_type] += record->weight;
	if (record->trace_type == TRACE_CPU)
		span->cpu_time_ns += (int64_t)(record->weight * record->period_ns);
}

/* The query is under the labels of its first sample: only there the trampolines are seen. */
static int label_sample(struct writer *writer, const struct sample_record *record,
                        const struct sample_fields *fields, struct pending_sample *sample)
{
	struct query_span *span =
		sample->span < writer->spans.count ? &writer->spans.items[sample->span] : NULL;
	struct known_query *known;

	if (!fields->label_count && !fields->has_context)
		return SQLITE_OK;
	sample->labels = labels_combine(writer, fields->labels, fields->label_count);
	if (sample->labels < 0)
		return (int)-sample->labels;
	sample->context = fields->has_context ? labels_intern_context(writer, &fields->context) : 0;
	if (sample->context < 0)
		return (int)-sample->context;
	if (span && !span->labels)
		span->labels = sample->labels;
	if (span && !span->context)
		span->context = sample->context;
	known = span ? intern_known_query(writer, record->query) : NULL;
	if (known && !known->labels)
		known->labels = sample->labels;
	if (known && !known->context)
		known->context = sample->context;
	return SQLITE_OK;
}

int sample_rows_take(struct writer *writer, const struct sample_record *record, size_t size)
{
	struct pending_sample *sample = &writer->samples[writer->sample_count];
	int64_t row;

	if (size < sizeof *record || size - sizeof *record < record->depth * sizeof record->trace[0])
		return SQLITE_OK; /* not a sample; the handler never writes it */
	struct sample_fields fields = read_fields(record, size);
	*sample = (struct pending_sample){
		.timestamp_ns = (int64_t)record->timestamp_ns,
		.cpu_id = record->cpu_id,
		.weight = record->weight,
		.beyond = beyond_periods(record, &fields),
		.wait_ns = (int64_t)fields.wait.ns,
		.wait = fields.wait.cause | (int64_t)fields.wait.object << 8,
		.opcode = (int64_t)fields.opcode,
		.truncated = (record->flags & SAMPLE_TRUNCATED) || record->depth > TRACE_MAX_FRAMES,
		.span = UINT32_MAX,
		.request_span = fields.span,
	};
	sample->series = intern_series(writer, record, fields.stretch);
	if (sample->series < 0)
		return (int)-sample->series;
	sample->stack = intern_stack(writer, record);
	if (sample->stack < 0)
		return (int)-sample->stack;
	if (record->query.hi || record->query.lo) {
		row = intern_query(writer, record->query, &sample->span);
		if (row < 0)
			return (int)-row;
		count_sample(writer, sample->span, record);
	}
	int code = label_sample(writer, record, &fields, sample);
	if (code)
		return code;
	writer->sample_count++;
	writer->fields_skipped += fields.skipped;
	writer->bytes += SAMPLE_BYTES;
	return SQLITE_OK;
}

/* --- into its table --------------------------------------------------------------- */

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
 * wider range where those are full to the end. Minus SQLite's code after an error. */
static int64_t find_free_time(struct writer *writer, int64_t timestamp_ns)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LAST_TIME);

	for (int64_t range = 64; range < INT64_MAX / 32; range *= 16) {
		int64_t last;

		sqlite3_bind_int64(statement, 1, timestamp_ns);
		sqlite3_bind_int64(statement, 2, timestamp_ns + range);
		last = writer_number(writer, WRITE_LAST_TIME);
		if (last < 0)
			return last;
		if (last + 1 < timestamp_ns + range)
			return last + 1;
	}
	return timestamp_ns;
}

/* The time is the key: of equal ones the later comes one behind. From a sample that has moved on, the
 * first one behind it that keeps its time ends it: where many times are taken, a look at all that
 * follow, for each, held the file for seconds. */
static void part_times(struct writer *writer, size_t from, bool all)
{
	for (size_t i = from; i < writer->sample_count; i++) {
		struct pending_sample *sample = &writer->samples[i];

		if (i && sample->timestamp_ns <= sample[-1].timestamp_ns)
			sample->timestamp_ns = sample[-1].timestamp_ns + 1;
		else if (!all)
			break;
	}
}

/* A sample whose time is taken in the file moves on by as little as there is. */
static int insert_samples(struct writer *writer)
{
	int code;

	writer->samples_inserted = 0;
	part_times(writer, 0, true);
	while ((code = writer_run(writer, WRITE_SAMPLES)) == SQLITE_CONSTRAINT_PRIMARYKEY ||
	       code == SQLITE_CONSTRAINT_ROWID) {
		size_t at = writer->sample_at;
		int64_t free = find_free_time(writer, writer->samples[at].timestamp_ns);

		if (free < 0)
			return (int)-free;
		if (free == writer->samples[at].timestamp_ns)
			return code;
		writer->samples[at].timestamp_ns = free;
		part_times(writer, at + 1, false);
		writer->samples_inserted = at;
	}
	return code;
}

/* Readers find a batch's samples by the process and the range of time, without a column in
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
	const struct pending_sample *samples = writer->samples;
	size_t count = writer->sample_count;
	int code = find_newest(writer);

	sort_samples(writer->samples, count);
	if (!code && count)
		code = insert_samples(writer);
	for (size_t i = 0; !code && i < count && samples[i].timestamp_ns <= writer->process_newest; i++)
		code = insert_late_sample(writer, samples[i].timestamp_ns);
	for (size_t i = 0; i < count; i++)
		writer_widen_span(writer, samples[i].span, samples[i].timestamp_ns, samples[i].timestamp_ns);
	writer->sample_first = count ? samples[0].timestamp_ns : 0;
	writer->sample_last = count ? samples[count - 1].timestamp_ns : 0;
	return code;
}
