/*
 * pprof's format: a protocol buffer message (profile.proto), compressed by gzip.
 *
 * The message is written in pieces: protocol buffers that follow each other are
 * read as one, whose repeated fields are those of all. So no more than one sample
 * or one location is ever put together in memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "queryprof.h"
#include "export/export.h"
#include "export/strings.h"
#include "export/sums.h"
#include "store/store.h"

#include "profile.pb-c.h"

struct function_entry {
	struct hash key;
	uint64_t id;
};

struct module_state {
	const struct report_module *module; /* NULL: has not come yet */
	bool has_lines;
};

struct writer {
	FILE *out;
	const struct report_info *info;
	struct sums sums;
	int64_t first_ns, last_ns, period_min, period_max;

	/* While it writes. */
	gzFile file;
	bool failed;
	char *piece; /* a packed message */
	size_t piece_capacity;
	struct strings strings;
	struct hash_table functions;
	bool *frames_written; /* by number */
	size_t frame_capacity;
	struct module_state *modules; /* by number */
	size_t module_capacity;
};

static void *begin_pprof(FILE *out, const struct report_info *info)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->out = out;
	writer->info = info;
	writer->functions = (struct hash_table)HASH_TABLE_OF(struct function_entry, SIZE_MAX);
	return writer;
}

static bool add_pprof(void *to, const struct report_sample *sample)
{
	struct writer *writer = to;

	if (!writer->sums.count) {
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

/* --- pieces ---------------------------------------------------------------------- */

/* Errors are kept, so that nobody has to ask after each piece. */
static void *fail(struct writer *writer)
{
	writer->failed = true;
	return NULL;
}

static void write_piece(struct writer *writer, const Pprof__Profile *piece)
{
	size_t size = pprof__profile__get_packed_size(piece);

	if (writer->failed)
		return;
	if (size > writer->piece_capacity) {
		free(writer->piece);
		writer->piece_capacity = size * 2;
		writer->piece = malloc(writer->piece_capacity);
		if (!writer->piece) {
			writer->piece_capacity = 0;
			fail(writer);
			return;
		}
	}
	pprof__profile__pack(piece, (uint8_t *)writer->piece);
	/* gzwrite takes an unsigned, and 0 bytes for a failure. */
	if (size && (size > INT32_MAX || gzwrite(writer->file, writer->piece, (unsigned)size) <= 0))
		fail(writer);
}

static int64_t string_number(struct writer *writer, const char *text)
{
	uint32_t number = strings_add(&writer->strings, text);

	if (number == STRINGS_NO_MEMORY) {
		fail(writer);
		return 0;
	}
	return number;
}

/* A zeroed array with room for one numbered so. NULL: no memory. */
static void *grow(void *array, size_t *capacity, size_t number, size_t size)
{
	size_t wanted = *capacity ? *capacity : 64;

	while (wanted <= number)
		wanted *= 2;
	if (wanted == *capacity)
		return array;
	char *grown = reallocarray(array, wanted, size);
	if (grown) {
		memset(grown + *capacity * size, 0, (wanted - *capacity) * size);
		*capacity = wanted;
	}
	return grown;
}

static uint64_t write_function(struct writer *writer, const struct report_line *line)
{
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions[] = { &function };
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	function.name = string_number(writer, line->function);
	function.system_name = string_number(writer, line->symbol[0] ? line->symbol : line->function);
	function.filename = string_number(writer, line->file);
	uint64_t words[] = { (uint64_t)function.name, (uint64_t)function.system_name,
		             (uint64_t)function.filename };
	struct hash key = hash_words(words, 3);
	struct function_entry *entry = hash_table_find(&writer->functions, key);
	if (entry)
		return entry->id;
	entry = hash_table_add(&writer->functions, key);
	if (!entry) {
		fail(writer);
		return 0;
	}
	entry->id = function.id = writer->functions.count;
	piece.n_function = 1;
	piece.function = functions;
	write_piece(writer, &piece);
	return function.id;
}

/* Mappings are written at the end, when it is known what they have. */
static uint64_t note_module(struct writer *writer, const struct report_frame *frame)
{
	const struct report_module *module = frame->module;

	if (!module)
		return 0;
	struct module_state *grown =
		grow(writer->modules, &writer->module_capacity, module->number, sizeof(*grown));
	if (!grown) {
		fail(writer);
		return 0;
	}
	writer->modules = grown;
	grown[module->number].module = module;
	for (size_t i = 0; i < frame->line_count; i++)
		if (frame->lines[i].file[0])
			grown[module->number].has_lines = true;
	return module->number + 1ull;
}

static uint64_t write_location(struct writer *writer, const struct report_frame *frame)
{
	Pprof__Location location = PPROF__LOCATION__INIT, *locations[] = { &location };
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	bool *grown = grow(writer->frames_written, &writer->frame_capacity, frame->number, sizeof(*grown));

	location.id = frame->number + 1ull;
	if (!grown) {
		fail(writer);
		return location.id;
	}
	writer->frames_written = grown;
	if (grown[frame->number])
		return location.id;
	grown[frame->number] = true;
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

static void write_sample(struct writer *writer, const struct sum *sum)
{
	const struct {
		const char *key, *value;
	} texts[LABELS_MAX] = {
		{ "query_id", sum->labels->query_id },
		{ "thread", sum->labels->thread },
		{ "database", sum->labels->database },
		{ "statement", sum->labels->statement },
	};
	Pprof__Label labels[LABELS_MAX], *pointers[LABELS_MAX];
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples[] = { &sample };
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	int64_t values[] = { sum->samples, sum->ns };
	uint64_t *ids = calloc(sum->stack->count + 1, sizeof(*ids));

	if (!ids) {
		fail(writer);
		return;
	}
	for (size_t i = 0; i < sum->stack->count; i++)
		ids[i] = write_location(writer, sum->stack->frames[i]);
	for (size_t i = 0; i < LABELS_MAX; i++) {
		if (!texts[i].value[0])
			continue;
		Pprof__Label *label = &labels[sample.n_label];
		pprof__label__init(label);
		label->key = string_number(writer, texts[i].key);
		label->str = string_number(writer, texts[i].value);
		pointers[sample.n_label++] = label;
	}
	sample.n_location_id = sum->stack->count;
	sample.location_id = ids;
	sample.n_value = 2;
	sample.value = values;
	sample.label = pointers;
	piece.n_sample = 1;
	piece.sample = samples;
	write_piece(writer, &piece);
	free(ids);
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
	mapping.has_functions = true; /* as far as can be had: readers need not look again */
	mapping.has_filenames = mapping.has_line_numbers = state->has_lines;
	mapping.has_inline_frames = state->has_lines && writer->info->inlines;
	piece.n_mapping = 1;
	piece.mapping = mappings;
	write_piece(writer, &piece);
}

/* Readers take the first mapping for the program. */
static void write_mappings(struct writer *writer)
{
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < writer->module_capacity; i++) {
			const struct module_state *state = &writer->modules[i];
			if (state->module &&
			    (strcmp(state->module->path, writer->info->executable) == 0) == (turn == 0))
				write_mapping(writer, state);
		}
}

/* What is there once. */
static void write_head(struct writer *writer)
{
	Pprof__ValueType count = PPROF__VALUE_TYPE__INIT, time = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType *types[] = { &count, &time };
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	int64_t comment = string_number(writer, "queryprof " QUERYPROF_VERSION);

	count.type = string_number(writer, "samples");
	count.unit = string_number(writer, "count");
	time.type = string_number(writer, strcmp(writer->info->trace_type, "CPU") == 0 ? "cpu" : "wall");
	time.unit = string_number(writer, "nanoseconds");
	piece.n_sample_type = 2;
	piece.sample_type = types;
	piece.default_sample_type = time.type;
	piece.time_nanos = writer->first_ns;
	/* Times may be anything where a file is damaged. */
	if (__builtin_sub_overflow(writer->last_ns, writer->first_ns, &piece.duration_nanos))
		piece.duration_nanos = 0;
	piece.period_type = &time;
	/* Samples may have several periods; their time is right without one. */
	if (writer->period_min == writer->period_max)
		piece.period = writer->period_min;
	piece.n_comment = 1;
	piece.comment = &comment;
	write_piece(writer, &piece);
}

static void write_strings(struct writer *writer)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	/* One by one: a profile with all statements of a day is large. */
	for (uint32_t i = 0; i < writer->strings.count; i++) {
		piece.n_string_table = 1;
		piece.string_table = &writer->strings.texts[i];
		write_piece(writer, &piece);
	}
}

static void write_profile(struct writer *writer)
{
	string_number(writer, ""); /* the first */
	write_head(writer);
	for (uint32_t i = 0; !writer->failed && i < writer->sums.count; i++)
		write_sample(writer, &writer->sums.list[i]);
	write_mappings(writer);
	write_strings(writer);
}

static bool end_pprof(void *ended, bool complete)
{
	struct writer *writer = ended;

	if (complete) {
		/* zlib writes to a descriptor, and closes it. */
		int fd = fflush(writer->out) == 0 ? dup(fileno(writer->out)) : -1;
		writer->file = fd >= 0 ? gzdopen(fd, "wb") : NULL;
		if (!writer->file) {
			fail(writer);
			if (fd >= 0)
				close(fd);
		} else {
			write_profile(writer);
			int error = errno;
			if (gzclose(writer->file) != Z_OK)
				fail(writer);
			else
				errno = error;
		}
	}
	bool fine = !writer->failed;
	sums_free(&writer->sums);
	strings_free(&writer->strings);
	hash_table_free(&writer->functions);
	free(writer->piece);
	free(writer->frames_written);
	free(writer->modules);
	free(writer);
	return fine;
}

const struct report_format report_pprof = {
	.name = "pprof",
	.summary = "for go tool pprof and its like, with labels; samples, ns",
	.is_binary = true,
	.begin = begin_pprof,
	.add = add_pprof,
	.end = end_pprof,
};
