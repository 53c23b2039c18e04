/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's format: a protocol buffer message (profile.proto), compressed by gzip.
 *
 * The message is written in pieces. At most one sample or one location is assembled in memory, and samples
 * are written when their run has ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/text.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/pprof_pieces.h"
#include "export/protobuf.h"
#include "export/resource.h"
#include "export/sums.h"
#include "label/pairs.h"
#include "queryprof.h"
#include "store/store.h"
#include "wire/sample_type.h"

#include "profile.pb-c.h"

struct module_state {
	const struct export_module *module; /* NULL: not seen yet */
	bool has_lines;
};

/* A reusable part of packed samples: some fields of a message. */
struct part {
	size_t start, size; /* in its bytes; size 0: not packed yet, or empty */
};

struct bytes {
	VECTOR(uint8_t) data;
};

struct writer {
	EXPORT_WRITER;
	struct sums sums, live; /* live: memory that was not freed, if the samples are of allocated memory */
	bool has_samples;
	int64_t first_ns, last_ns, period_min, period_max;

	/* Used while it writes. */
	struct pprof_pieces pieces;
	struct index functions;
	struct bytes parts;
	VECTOR(struct part) stacks; /* by number: locations */
	struct index text_index;    /* of texts in labels that many samples share */
	VECTOR(struct part) texts;
	/* Since the last flush. */
	struct bytes label_parts;
	VECTOR(struct part) labels;    /* by number */
	VECTOR(int64_t) query_strings; /* strings of query ids, by the query's number; 0: not written yet */
	VECTOR(bool) frames_written;   /* by number */
	VECTOR(struct module_state) modules; /* by number */
};

/* A sample represents as many blocks as its weight. */
static bool is_allocated(const struct writer *writer)
{
	return strcmp(writer->info->trace_type, "MemorySample") == 0;
}

static bool is_live(const struct writer *writer)
{
	return strcmp(writer->info->trace_type, "MemoryLive") == 0;
}

static bool add_pprof(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;

	if (sample->is_other)
		return sums_add(&writer->live, sample);
	if (!writer->has_samples) {
		writer->has_samples = true;
		writer->first_ns = sample->time_ns;
		writer->period_min = writer->period_max = sample->period_ns;
	}
	writer->last_ns = sample->time_ns;
	if (sample->period_ns < writer->period_min)
		writer->period_min = sample->period_ns;
	if (sample->period_ns > writer->period_max)
		writer->period_max = sample->period_ns;
	return sums_add(&writer->sums, sample);
}

/* --- places ---------------------------------------------------------------------- */

static void fail(struct writer *writer)
{
	writer->pieces.failed = true;
}

static void write_piece(struct writer *writer, const Pprof__Profile *piece)
{
	pprof_pieces_message(&writer->pieces, piece);
}

static int64_t string_number(struct writer *writer, const char *text)
{
	return pprof_pieces_string(&writer->pieces, text);
}

static uint64_t write_function(struct writer *writer, const struct export_line *line)
{
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions[] = { &function };
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	function.name = string_number(writer, line->function);
	function.system_name = string_number(writer, line->symbol[0] ? line->symbol : line->function);
	function.filename = string_number(writer, line->file);
	uint64_t words[] = { (uint64_t)function.name, (uint64_t)function.system_name,
		             (uint64_t)function.filename };
	struct hash key = hash_words(words, 3);
	uint32_t number = index_find(&writer->functions, key);
	if (number != INDEX_NONE)
		return number + 1ull;
	number = index_add(&writer->functions, key);
	if (number == INDEX_NONE) {
		fail(writer);
		return 0;
	}
	function.id = number + 1ull;
	piece.n_function = 1;
	piece.function = functions;
	write_piece(writer, &piece);
	return function.id;
}

/* Mappings are written at the end, when their properties are known. */
static uint64_t note_module(struct writer *writer, const struct export_frame *frame)
{
	const struct export_module *module = frame->module;

	if (!module)
		return 0;
	struct module_state *state = vector_at(&writer->modules, module->number);
	if (!state) {
		fail(writer);
		return 0;
	}
	state->module = module;
	for (size_t i = 0; i < frame->line_count; i++)
		if (frame->lines[i].file[0])
			state->has_lines = true;
	return module->number + 1ull;
}

static uint64_t write_location(struct writer *writer, const struct export_frame *frame)
{
	Pprof__Location location = PPROF__LOCATION__INIT, *locations[] = { &location };
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	bool *is_written = vector_at(&writer->frames_written, frame->number);

	location.id = frame->number + 1ull;
	if (!is_written) {
		fail(writer);
		return location.id;
	}
	if (*is_written)
		return location.id;
	*is_written = true;
	Pprof__Line *lines = calloc(frame->line_count, sizeof(*lines));
	Pprof__Line **pointers = calloc(frame->line_count, sizeof(Pprof__Line *));
	for (size_t i = 0; lines && pointers && i < frame->line_count; i++) {
		pprof__line__init(&lines[i]);
		lines[i].function_id = write_function(writer, &frame->lines[i]);
		lines[i].line = frame->lines[i].line;
		pointers[i] = &lines[i];
	}
	if (lines && pointers) {
		location.mapping_id = note_module(writer, frame);
		location.address = frame->address & ~STORE_NOWHERE;
		location.n_line = frame->line_count;
		location.line = pointers;
		piece.n_location = 1;
		piece.location = locations;
		write_piece(writer, &piece);
	} else {
		fail(writer);
	}
	free(lines);
	free(pointers);
	return location.id;
}

#define LABELS_MAX 4

static void fill_label(struct writer *writer, Pprof__Label *label, const struct label_pair *pair)
{
	label->key = string_number(writer, pair->key);
	if (pair->is_number) {
		label->num = strtoll(pair->text, NULL, 10);
		label->num_unit = pair->unit ? string_number(writer, pair->unit) : 0;
	} else {
		label->str = string_number(writer, pair->text);
	}
}

/* The labels of a sample while they are assembled. */
struct sample_labels {
	Pprof__Label items[LABELS_MAX + LABELS_OF_SET_MAX], *pointers[LABELS_MAX + LABELS_OF_SET_MAX];
	size_t count;
};

static Pprof__Label *add_label(struct sample_labels *labels)
{
	Pprof__Label *label = &labels->items[labels->count];

	pprof__label__init(label);
	labels->pointers[labels->count++] = label;
	return label;
}

static void add_text(struct writer *writer, struct sample_labels *labels, const char *key, const char *text)
{
	if (!text[0])
		return;
	Pprof__Label *label = add_label(labels);
	label->key = string_number(writer, key);
	label->str = string_number(writer, text);
}

/* Adds a label to a series, unless it has too many labels, or one with this name. */
static void add_series_label(struct writer *writer, struct sample_labels *labels, const char *key,
                             const char *text)
{
	size_t size = strlen(text);
	char *name = resource_label_name(key);
	char *cut = strndup(text, size > LABEL_TEXT_MAX ? text_cut(text, LABEL_TEXT_MAX) : size);

	if (!name || !cut) {
		fail(writer);
	} else {
		const struct resource *series = writer->info->series;
		bool is_free = !resource_has_label(series, series->items.count, name);
		int64_t number = string_number(writer, name);

		for (size_t i = 0; i < labels->count; i++)
			is_free &= labels->items[i].key != number;
		if (is_free && labels->count + series->items.count < SERIES_LABELS_MAX)
			add_text(writer, labels, name, cut);
	}
	free(name);
	free(cut);
}

/* If each set of labels is a series, labels are only texts with few values. The span is never a label of a
 * series. */
static void fill_series(struct writer *writer, struct sample_labels *labels, const struct export_labels *of,
                        const struct label_pairs *own)
{
	char text[17];

	add_series_label(writer, labels, "span_id", of->link[0] ? of->link + 32 : "");
	snprintf(text, sizeof(text), "%016" PRIx64, (uint64_t)of->statement_hash);
	add_series_label(writer, labels, "statement", of->statement_hash ? text : "");
	add_series_label(writer, labels, "database", of->database);
	for (size_t i = 0; i < own->items.count; i++) {
		const struct label_pair *pair = &own->items.items[i];

		if (!pair->is_number && strcmp(pair->key, "traceparent") != 0)
			add_series_label(writer, labels, pair->key, pair->text);
	}
}

/* A message's fields may come in any number of pieces, so what samples share is packed once. */
static void pack_part(struct writer *writer, struct bytes *bytes, struct part *part,
                      const Pprof__Sample *sample)
{
	const size_t size = pprof__sample__get_packed_size(sample), start = bytes->data.count;

	if (!vector_reserve(&bytes->data, start + size)) {
		fail(writer);
		return;
	}
	pprof__sample__pack(sample, bytes->data.items + start);
	bytes->data.count += size;
	*part = (struct part){ start, size };
}

static void pack_stack(struct writer *writer, const struct export_stack *stack, struct part *part)
{
	Pprof__Sample sample = PPROF__SAMPLE__INIT;
	uint64_t *ids = calloc(stack->count + 1, sizeof(*ids));

	if (!ids) {
		fail(writer);
		return;
	}
	for (size_t i = 0; i < stack->count; i++)
		ids[i] = write_location(writer, export_stack_frame(stack, i));
	sample.n_location_id = stack->count;
	sample.location_id = ids;
	pack_part(writer, &writer->parts, part, &sample);
	free(ids);
}

static void pack_filled(struct writer *writer, struct sample_labels *labels, struct bytes *bytes,
                        struct part *part)
{
	Pprof__Sample sample = PPROF__SAMPLE__INIT;

	sample.n_label = labels->count;
	sample.label = labels->pointers;
	pack_part(writer, bytes, part, &sample);
}

static void pack_series(struct writer *writer, const struct export_labels *of, struct part *part)
{
	struct label_pairs own = { .items = { 0 } };
	struct sample_labels labels = { .count = 0 };

	if (!label_pairs_add_set(&own, of->labels))
		fail(writer);
	fill_series(writer, &labels, of, &own);
	label_pairs_free(&own);
	pack_filled(writer, &labels, &writer->label_parts, part);
}

static void pack_text(struct writer *writer, const char *key, const char *text, struct part *part)
{
	struct label_pairs own = { .items = { 0 } };
	struct sample_labels labels = { .count = 0 };

	if (key)
		add_text(writer, &labels, key, text);
	else if (!label_pairs_add_set(&own, text))
		fail(writer);
	for (size_t i = 0; i < own.items.count; i++)
		fill_label(writer, add_label(&labels), &own.items.items[i]);
	label_pairs_free(&own);
	pack_filled(writer, &labels, &writer->parts, part);
}

static void append_label(struct writer *writer, const uint8_t *bytes, size_t size)
{
	const size_t count = writer->label_parts.data.count;

	if (!vector_reserve(&writer->label_parts.data, count + size)) {
		fail(writer);
		return;
	}
	memcpy(writer->label_parts.data.items + count, bytes, size);
	writer->label_parts.data.count += size;
}

/* Adds the label `key` with that text, unless it is ""; key NULL: the labels of that set. Many samples have
 * them. Equal texts have equal pointers, see names.h. */
static void append_text(struct writer *writer, const char *key, const char *text)
{
	const uint64_t words[] = { (uintptr_t)key, (uintptr_t)text };
	struct part *part;

	if (!text[0])
		return;
	part = index_item(&writer->text_index, hash_words(words, 2), &writer->texts);
	if (!part) {
		fail(writer);
		return;
	}
	if (!part->size)
		pack_text(writer, key, text, part);
	append_label(writer, writer->parts.data.items + part->start, part->size);
}

#define SAMPLE_TAG PROTOBUF_BYTES(2) /* Profile.sample */
#define LABEL_TAG PROTOBUF_BYTES(3)  /* Sample.label */
#define KEY_TAG PROTOBUF_NUMBER(1)   /* Label.key */
#define STR_TAG PROTOBUF_NUMBER(2)   /* Label.str */
#define NUMBERS_MAX 64               /* a few tags, sizes and numbers: bytes at most */

/* The id, which no two queries share. */
static void append_query(struct writer *writer, const struct export_labels *of)
{
	int64_t *number = vector_at(&writer->query_strings, of->query);
	uint8_t label[NUMBERS_MAX], packed[NUMBERS_MAX], *to = label, *end = packed;

	if (!of->query_id[0])
		return;
	if (!number) {
		fail(writer);
		return;
	}
	if (!*number)
		*number = pprof_pieces_new_string(&writer->pieces, of->query_id);
	*to++ = KEY_TAG;
	to = protobuf_put(to, (uint64_t)string_number(writer, "query_id"));
	*to++ = STR_TAG;
	to = protobuf_put(to, (uint64_t)*number);
	end = protobuf_put_bytes(end, LABEL_TAG, (size_t)(to - label));
	end = mempcpy(end, label, (size_t)(to - label));
	append_label(writer, packed, (size_t)(end - packed));
}

static void pack_labels(struct writer *writer, const struct export_labels *of, struct part *part)
{
	const size_t start = writer->label_parts.data.count;

	if (writer->info->series) {
		pack_series(writer, of, part);
		return;
	}
	append_query(writer, of);
	append_text(writer, "thread", of->thread);
	append_text(writer, "database", of->database);
	append_text(writer, "statement", of->statement);
	append_text(writer, NULL, of->labels);
	*part = (struct part){ start, writer->label_parts.data.count - start };
}

static bool write_sample(struct writer *writer, const struct sums *sums, struct sum sum)
{
	struct part *stack = vector_at(&writer->stacks, sum.stack),
		    *labels = vector_at(&writer->labels, sum.labels);
	Pprof__Sample sample = PPROF__SAMPLE__INIT;
	const bool is_second = sums == &writer->live;
	int64_t values[4] = { 0 };
	uint8_t numbers[NUMBERS_MAX];

	if (!stack || !labels) {
		fail(writer);
		return false;
	}
	if (!stack->size)
		pack_stack(writer, sums_stack(sums, sum), stack);
	if (!labels->size)
		pack_labels(writer, sums_labels(sums, sum), labels);
	values[2 * is_second] = is_allocated(writer) || is_live(writer) ? sum.weight : sum.samples;
	values[2 * is_second + 1] = sum.value;
	sample.n_value = writer->info->has_live ? 4 : 2;
	sample.value = values;
	const size_t size = pprof__sample__pack(&sample, numbers);
	uint8_t *to = pprof_pieces_room(&writer->pieces, stack->size + size + labels->size + NUMBERS_MAX);
	if (!to)
		return false;
	to = protobuf_put_bytes(to, SAMPLE_TAG, stack->size + size + labels->size);
	to = mempcpy(to, writer->parts.data.items + stack->start, stack->size);
	to = mempcpy(to, numbers, size);
	to = mempcpy(to, writer->label_parts.data.items + labels->start, labels->size);
	pprof_pieces_write(&writer->pieces, to);
	return !writer->pieces.failed;
}

static bool write_samples(void *context, const struct sums *sums, const struct sum *first, size_t count)
{
	struct writer *writer = context;

	for (size_t i = 0; i < count; i++) {
		if (i + 2 * SUMS_AHEAD < count)
			SUMS_FETCH(&writer->labels, first[i + 2 * SUMS_AHEAD].labels);
		if (i + SUMS_AHEAD < count && first[i + SUMS_AHEAD].labels < writer->labels.count)
			SUMS_FETCH(&writer->label_parts.data,
			           writer->labels.items[first[i + SUMS_AHEAD].labels].start);
		if (!write_sample(writer, sums, first[i]))
			return false;
	}
	return true;
}

static void write_mapping(struct writer *writer, const struct module_state *state)
{
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings[] = { &mapping };
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	mapping.id = state->module->number + 1ull;
	mapping.memory_start = state->module->start;
	mapping.memory_limit = state->module->end;
	mapping.filename = string_number(writer, state->module->path);
	mapping.build_id = string_number(writer, state->module->build_id);
	mapping.has_functions = true; /* as far as possible: readers need not look them up again */
	mapping.has_filenames = mapping.has_line_numbers = state->has_lines;
	mapping.has_inline_frames = state->has_lines && writer->info->inlines;
	piece.n_mapping = 1;
	piece.mapping = mappings;
	write_piece(writer, &piece);
}

/* Readers treat the first mapping as the program. */
static void write_mappings(struct writer *writer)
{
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < writer->modules.count; i++) {
			const struct module_state *state = &writer->modules.items[i];
			if (state->module &&
			    (strcmp(state->module->path, writer->info->executable) == 0) == (turn == 0))
				write_mapping(writer, state);
		}
}

/* The types' names in pprof, which shows an unknown unit as it is. */
static const char *value_name(const char *trace_type)
{
	return strcmp(trace_type, "CPU") == 0                                       ? "cpu"
	       : strcmp(trace_type, "Real") == 0 || strcmp(trace_type, "Wall") == 0 ? "wall"
	       : strcmp(trace_type, "MemorySample") == 0                            ? "alloc_space"
	       : strcmp(trace_type, "MemoryLive") == 0                              ? "inuse_space"
	                                                                            : trace_type;
}

static const char *unit_name(const char *unit)
{
	return strcmp(unit, UNIT_NS) == 0 ? "nanoseconds" : unit;
}

/* The parts that occur once per profile. */
static void write_head(struct writer *writer)
{
	Pprof__ValueType count = PPROF__VALUE_TYPE__INIT, value = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType live_count = PPROF__VALUE_TYPE__INIT, live_value = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType *types[] = { &count, &value, &live_count, &live_value };
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	int64_t comment = string_number(writer, "queryprof " QUERYPROF_VERSION);

	count.type = string_number(writer, is_allocated(writer) ? "alloc_objects"
	                                   : is_live(writer)    ? "inuse_objects"
	                                                        : "samples");
	count.unit = live_count.unit = string_number(writer, "count");
	value.type = string_number(writer, value_name(writer->info->trace_type));
	value.unit = live_value.unit = string_number(writer, unit_name(writer->info->unit));
	if (writer->info->has_live) {
		live_count.type = string_number(writer, "inuse_objects");
		live_value.type = string_number(writer, "inuse_space");
	}
	piece.n_sample_type = writer->info->has_live ? 4 : 2;
	piece.sample_type = types;
	piece.default_sample_type = value.type;
	piece.time_nanos = writer->first_ns;
	/* A damaged file may have any times. */
	if (__builtin_sub_overflow(writer->last_ns, writer->first_ns, &piece.duration_nanos))
		piece.duration_nanos = 0;
	piece.period_type = &value;
	/* Samples may have several periods, or none; their values are correct without one. */
	if (writer->period_min == writer->period_max)
		piece.period = writer->period_min;
	piece.n_comment = 1;
	piece.comment = &comment;
	write_piece(writer, &piece);
}

static bool flush_pprof(void *of, int64_t now_ns, size_t *left)
{
	struct writer *writer = of;

	if ((!writer->pieces.file && !pprof_pieces_open(&writer->pieces, writer->out)) ||
	    !sums_flush(&writer->sums, now_ns, true, write_samples, writer) ||
	    !sums_flush(&writer->live, now_ns, true, write_samples, writer))
		fail(writer);
	writer->labels.count = writer->label_parts.data.count = writer->query_strings.count = 0;
	*left += sums_count(&writer->sums) + sums_count(&writer->live);
	return !writer->pieces.failed;
}

static bool end_pprof(void *ended, bool complete)
{
	struct writer *writer = ended;

	if (complete && flush_pprof(writer, INT64_MAX, &(size_t){ 0 })) {
		write_head(writer);
		write_mappings(writer);
	}
	const bool fine = pprof_pieces_close(&writer->pieces);
	const int error = errno;
	sums_free(&writer->sums);
	sums_free(&writer->live);
	index_free(&writer->text_index);
	index_free(&writer->functions);
	vector_free(&writer->texts);
	vector_free(&writer->query_strings);
	vector_free(&writer->parts.data);
	vector_free(&writer->label_parts.data);
	vector_free(&writer->stacks);
	vector_free(&writer->labels);
	vector_free(&writer->frames_written);
	vector_free(&writer->modules);
	errno = error;
	return fine;
}

const struct export_format export_pprof = {
	.name = "pprof",
	.summary = "for tools like go tool pprof, with labels; samples, ns",
	.is_binary = true,
	.has_live = true,
	.writer_size = sizeof(struct writer),
	.add = add_pprof,
	.flush = flush_pprof,
	.end = end_pprof,
};
