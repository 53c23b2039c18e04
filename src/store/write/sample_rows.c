/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/sample_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "collect/sample_reader.h"
#include "store/write/call_stacks.h"
#include "store/write/columns.h"
#include "store/write/labels.h"
#include "store/write/queries.h"
#include "store/write/stacks.h"
#include "store/write/threads.h"
#include "store/write/writer.h"

/* The approximate size of a row in the file, for the limits of a batch. */
#define SAMPLE_BYTES 40
#define LATE_BYTES 16

struct pending_sample {
	int64_t timestamp_ns;
	int64_t series, stack;
	int64_t beyond; /* the value in addition to weight × period */
	int64_t labels, context;
	int64_t wait_ns, wait; /* of a wait: its duration; its cause, and its object << 8 */
	uint32_t entry;        /* index into the batch's queries; UINT32_MAX: no query */
	uint32_t cpu_id, weight;
	int64_t opcode, transaction, pointer, call_stack;
	bool truncated;
	uint64_t request_span; /* the span that contains the sample; 0: none */
};

#define NAME(name, value) ", " #name
#define SAMPLE_NAMES "timestamp_ns" SAMPLE_COLUMNS(NAME)

const struct sample_writer sample_writer_new = {
	.sql = {
		.insert.sql = "INSERT OR FAIL INTO samples (" SAMPLE_NAMES ") SELECT " SAMPLE_NAMES " FROM samples_to_write",
		.last_time.sql = "SELECT max(timestamp_ns) FROM samples"
		                 " WHERE timestamp_ns >= :first_ns AND timestamp_ns < :end_ns",
		.newest.sql = "SELECT max(before_ns, last_ns) FROM batches WHERE process = :process"
		              " ORDER BY id DESC LIMIT 1",
		.add_late.sql = "INSERT INTO late_samples (timestamp_ns, batch) VALUES (:timestamp_ns, :batch)",
	},
};

bool sample_writer_reserve(struct sample_writer *samples)
{
	samples->pending = malloc(WRITER_BATCH * sizeof(struct pending_sample));
	return samples->pending != NULL;
}

void sample_writer_free(struct sample_writer *samples)
{
	free(samples->pending);
	samples->pending = NULL;
}

void sample_writer_clear(struct sample_writer *samples)
{
	samples->first = samples->last = 0;
	samples->count = samples->delay_count = samples->fields_skipped = 0;
}

/* --- out of its record ------------------------------------------------------------ */

/* The optional fields of a sample that this build knows. */
struct sample_fields {
	bool has_value, has_context;
	int64_t value;
	const uint64_t *labels;
	size_t label_count;
	struct trace_context context;
	struct wait_field wait; /* zero: no wait */
	uint64_t span;
	uint64_t opcode; /* 0: not known */
	uint64_t transaction, pointer;
	struct text call_stack; /* empty: none */
	uint32_t stretch;
	size_t skipped;
};

static struct sample_fields read_fields(const struct sample_record *record, size_t size)
{
	struct sample_fields fields = { .stretch = 1 };
	const void *at = record->addresses + record->depth, *end = (const char *)record + size;
	const struct sample_field *field;

	for (uint32_t i = 0; i < record->fields && (field = sample_field_next(&at, end)); i++) {
		if (field->tag == FIELD_VALUE && field->size == sizeof(fields.value)) {
			fields.has_value = true;
			memcpy(&fields.value, field->content, sizeof(fields.value));
		} else if (field->tag == FIELD_LABELS) {
			fields.labels = field->content;
			fields.label_count = field->size / sizeof(*fields.labels);
		} else if (field->tag == FIELD_TRACE_CONTEXT && field->size == sizeof(fields.context)) {
			memcpy(&fields.context, field->content, sizeof(fields.context));
			fields.has_context = true;
		} else if (field->tag == FIELD_WAIT && field->size == sizeof(fields.wait)) {
			memcpy(&fields.wait, field->content, sizeof(fields.wait));
		} else if (field->tag == FIELD_SPAN && field->size == sizeof(fields.span)) {
			memcpy(&fields.span, field->content, sizeof(fields.span));
		} else if (field->tag == FIELD_OPCODE && field->size == sizeof(fields.opcode)) {
			memcpy(&fields.opcode, field->content, sizeof(fields.opcode));
		} else if (field->tag == FIELD_TRANSACTION && field->size == sizeof(fields.transaction)) {
			memcpy(&fields.transaction, field->content, sizeof(fields.transaction));
		} else if (field->tag == FIELD_POINTER && field->size == sizeof(fields.pointer)) {
			memcpy(&fields.pointer, field->content, sizeof(fields.pointer));
		} else if (field->tag == FIELD_CALL_STACK) {
			fields.call_stack = (struct text){ (const char *)field->content, field->size };
		} else if (field->tag == FIELD_STRETCH && field->size == sizeof(fields.stretch)) {
			memcpy(&fields.stretch, field->content, sizeof(fields.stretch));
		} else {
			fields.skipped++;
		}
	}
	return fields;
}

/* The value in addition to weight × period. A sample without a timer and without a value counts its
 * weight. */
static int64_t beyond_periods(const struct sample_record *record, const struct sample_fields *fields)
{
	const struct sample_type *type = sample_type_at(record->type);
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
	struct batch_query *entry;

	if (index >= writer->queries->in_batch.count || record->type >= SAMPLE_QUERY_TYPES)
		return;
	entry = &writer->queries->in_batch.items[index];
	entry->samples[record->type]++;
	entry->weights[record->type] += record->weight;
	if (record->type == SAMPLE_CPU)
		entry->cpu_time_ns += (int64_t)(record->weight * record->period_ns);
}

/* The query gets the labels of its first sample, because only samples see the trampolines. */
static int label_sample(struct writer *writer, const struct sample_record *record,
                        const struct sample_fields *fields, struct pending_sample *sample)
{
	struct batch_query *entry = sample->entry < writer->queries->in_batch.count
	                                    ? &writer->queries->in_batch.items[sample->entry]
	                                    : NULL;
	struct known_query *known;

	if (!fields->label_count && !fields->has_context)
		return SQLITE_OK;
	sample->labels = labels_combine(writer, fields->labels, fields->label_count);
	if (sample->labels < 0)
		return (int)-sample->labels;
	sample->context = fields->has_context ? labels_intern_context(writer, &fields->context) : 0;
	if (sample->context < 0)
		return (int)-sample->context;
	if (entry && !entry->labels)
		entry->labels = sample->labels;
	if (entry && !entry->context)
		entry->context = sample->context;
	known = entry ? intern_known_query(writer, record->query) : NULL;
	if (known && !known->labels)
		known->labels = sample->labels;
	if (known && !known->context)
		known->context = sample->context;
	return SQLITE_OK;
}

int sample_rows_add(struct writer *writer, const struct sample_record *record, size_t size)
{
	struct pending_sample *sample = &writer->samples->pending[writer->samples->count];
	int64_t row;

	if (size - sizeof(*record) < record->depth * sizeof(record->addresses[0]))
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
		.transaction = (int64_t)fields.transaction,
		.pointer = (int64_t)fields.pointer,
		.truncated = (record->flags & SAMPLE_TRUNCATED) || record->depth > STACK_FRAMES_MAX,
		.entry = UINT32_MAX,
		.request_span = fields.span,
	};
	sample->series = intern_series(writer, record, fields.stretch);
	if (sample->series < 0)
		return (int)-sample->series;
	sample->stack = intern_stack(writer, record);
	if (sample->stack < 0)
		return (int)-sample->stack;
	if (record->query.hi || record->query.lo) {
		row = intern_query(writer, record->query, &sample->entry);
		if (row < 0)
			return (int)-row;
		count_sample(writer, sample->entry, record);
	}
	sample->call_stack = intern_call_stack(writer, fields.call_stack.bytes, fields.call_stack.size);
	if (sample->call_stack < 0)
		return (int)-sample->call_stack;
	int code = label_sample(writer, record, &fields, sample);
	if (code)
		return code;
	writer->samples->count++;
	writer->samples->fields_skipped += fields.skipped;
	writer->bytes += SAMPLE_BYTES;
	return SQLITE_OK;
}

/* --- the rows as a table ------------------------------------------------------------ */

#define COLUMN(name, value) COLUMN_##name,
enum sample_column { COLUMN_timestamp_ns, SAMPLE_COLUMNS(COLUMN) };

#define VALUE(name, value)                                                                                   \
	case COLUMN_##name: return value;

static int64_t query_of(const struct writer *writer, const struct pending_sample *sample)
{
	return sample->entry < writer->queries->in_batch.count
	               ? writer->queries->in_batch.items[sample->entry].rows.query
	               : 0;
}

static int64_t value_of(const struct writer *writer, const struct pending_sample *sample,
                        enum sample_column column)
{
	switch (column) {
	case COLUMN_timestamp_ns: return sample->timestamp_ns; SAMPLE_COLUMNS(VALUE)
	}
	return 0;
}

static size_t count_rows(const void *rows)
{
	const struct writer *writer = *(struct writer *const *)rows;

	return writer->samples->count - writer->samples->inserted;
}

/* The statement begins with the first row that is not in the file yet. */
static void read_value(const void *memory, const void *rows, size_t row, int column, sqlite3_context *result)
{
	struct writer *writer = *(struct writer *const *)rows;
	size_t at = writer->samples->inserted + row;

	(void)memory;
	writer->samples->at = at;
	sqlite3_result_int64(result,
	                     value_of(writer, &writer->samples->pending[at], (enum sample_column)column));
}

const struct made_table samples_to_write = {
	.name = "samples_to_write",
	.columns = SAMPLE_NAMES,
	.rows_size = sizeof(struct writer *),
	.make = writer_rows,
	.count = count_rows,
	.read = read_value,
};

/* --- into its table --------------------------------------------------------------- */

COMPARE_BY(compare_samples, struct pending_sample, timestamp_ns)

/* Samples arrive nearly sorted, because only threads are interleaved. Insertion sort is by far the fastest
 * for that. A limit covers other cases. */
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
			qsort(samples, count, sizeof(*samples), compare_samples);
			return;
		}
	}
}

/* A free time near a used one: after the last of the next few ns, or of a wider range if those are
 * full. Minus SQLite's code after an error. */
static int64_t find_free_time(struct writer *writer, int64_t timestamp_ns)
{
	struct prepared *find = &writer->samples->sql.last_time;

	for (int64_t range = 64; range < INT64_MAX / 32; range *= 16) {
		int64_t last;

		writer_bind(writer, find);
		bind_number(find, "first_ns", timestamp_ns);
		bind_number(find, "end_ns", timestamp_ns + range);
		last = writer_number(writer, find);
		if (last < 0)
			return last;
		if (last + 1 < timestamp_ns + range)
			return last + 1;
	}
	return timestamp_ns;
}

/* The time is the key, so the later of two equal ones is moved by one. A run of moved samples ends at the
 * first one that keeps its time: if many times are taken, a search of all following samples for each one held
 * the file for seconds. */
static void part_times(struct sample_writer *samples, size_t from, bool all)
{
	for (size_t i = from; i < samples->count; i++) {
		struct pending_sample *sample = &samples->pending[i];

		if (i && sample->timestamp_ns <= sample[-1].timestamp_ns)
			sample->timestamp_ns = sample[-1].timestamp_ns + 1;
		else if (!all)
			break;
	}
}

/* A sample whose time is taken in the file gets the nearest later free time. */
static int insert_samples(struct writer *writer)
{
	struct sample_writer *samples = writer->samples;
	int code;

	samples->inserted = 0;
	part_times(samples, 0, true);
	while ((code = writer_run(writer, &samples->sql.insert)) == SQLITE_CONSTRAINT_PRIMARYKEY ||
	       code == SQLITE_CONSTRAINT_ROWID) {
		size_t at = samples->at;
		int64_t free = find_free_time(writer, samples->pending[at].timestamp_ns);

		if (free < 0)
			return (int)-free;
		if (free == samples->pending[at].timestamp_ns)
			return code;
		samples->pending[at].timestamp_ns = free;
		part_times(samples, at + 1, false);
		samples->inserted = at;
	}
	return code;
}

/* Readers find a batch's samples by the process and the range of time, without a column in every sample.
 * Samples outside that range are listed. */
static int insert_late_sample(struct writer *writer, int64_t timestamp_ns)
{
	struct prepared *add = writer_bind(writer, &writer->samples->sql.add_late);

	bind_number(add, "timestamp_ns", timestamp_ns);
	bind_number(add, "batch", writer->stored_batch);
	writer->bytes += LATE_BYTES;
	return writer_run(writer, add);
}

/* Read from the file each time: another copy of the library may write for this process. */
static int find_newest(struct writer *writer)
{
	struct prepared *find = writer_bind(writer, &writer->samples->sql.newest);
	int64_t newest;

	bind_number(find, "process", writer->threads->process);
	newest = writer->samples->process_newest = writer_number(writer, find);
	return newest < 0 ? (int)-newest : SQLITE_OK;
}

int sample_rows_insert(struct writer *writer)
{
	struct sample_writer *samples = writer->samples;
	const struct pending_sample *pending = samples->pending;
	size_t count = samples->count;
	int code = find_newest(writer);

	sort_samples(samples->pending, count);
	if (!code && count)
		code = insert_samples(writer);
	for (size_t i = 0; !code && i < count && pending[i].timestamp_ns <= samples->process_newest; i++)
		code = insert_late_sample(writer, pending[i].timestamp_ns);
	for (size_t i = 0; i < count; i++)
		queries_widen(writer->queries, pending[i].entry, pending[i].timestamp_ns,
		              pending[i].timestamp_ns);
	samples->first = count ? pending[0].timestamp_ns : 0;
	samples->last = count ? pending[count - 1].timestamp_ns : 0;
	return code;
}
