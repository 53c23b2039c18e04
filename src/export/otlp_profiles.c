/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's profiles: the message ProfilesData, for POST /v1development/profiles.
 *
 * Each process is a resource with one profile; the thread, the query and its labels are attributes of
 * samples. Samples with one stack and one set of attributes are one, with a value and a time each. A size
 * precedes each message, so a profile is in memory until it is written. After EVENTS_MAX samples, each
 * process gets another one. The dictionary comes last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/tally.h"
#include "base/text.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/otlp_dictionary.h"
#include "export/otlp_resource.h"
#include "export/protobuf.h"
#include "label/pairs.h"
#include "queryprof.h"
#include "wire/sample_type.h"

#include "otlp_profiles.pb-c.h"

/* Events in memory before they are written. */
#define EVENTS_MAX (1 << 20)

/* Attributes' numbers, packed: bytes of `attributes`. */
struct part {
	size_t start;
	uint32_t size;
};

/* What samples with the same labels have in their messages. */
struct common {
	struct part attributes;
	int32_t link;
};

/* Data of labels. */
struct labelled {
	const struct export_labels *labels; /* NULL: none */
	uint32_t common, process;           /* the indexes in `commons` and `processes` */
};

/* Samples of one stack and one set of labels: nearly as many as samples. */
struct events {
	uint32_t common; /* the index in `commons` */
	int32_t stack;
	uint32_t count;
	uint32_t end; /* after sorting: the end of its events in `values` and `times` */
};

struct event {
	uint32_t events; /* the index in `list` */
	int64_t value;
	uint64_t time;
};

/* The names of programs and hosts have unique pointers. */
struct process {
	const char *program, *host;
	int64_t id;
	VECTOR(uint32_t) events; /* the indexes of its events in `list` */
};

struct writer {
	EXPORT_WRITER;
	struct otlp_dictionary dictionary;
	VECTOR(uint8_t) attributes;
	VECTOR(struct labelled) labelled; /* by number */
	VECTOR(struct common) commons;
	VECTOR(int32_t) queries; /* attributes of query ids, by the query's number; 0: none yet */
	struct index text_index; /* of texts that many labels share */
	VECTOR(struct part) texts;
	struct index process_index;
	VECTOR(struct process) processes;
	struct tally rows; /* by the numbers of labels and stack: the index in `list`, from 1 */
	VECTOR(struct events) list;
	VECTOR(struct event) events; /* in the order of time */
	int64_t *values;             /* grouped by item of `list`, then in the order of time */
	uint64_t *times;
	int64_t first_ns, last_ns, period_ns;
	size_t samples_size;     /* in bytes, at most */
	VECTOR(uint8_t) samples; /* of a process, packed */
};

static void fail(struct writer *writer)
{
	writer->dictionary.failed = true;
}

/* --- labels ----------------------------------------------------------------------- */

static void add_attribute(struct writer *writer, int32_t number)
{
	uint8_t packed[PROTOBUF_NUMBER_MAX];
	const size_t size = (size_t)(protobuf_put(packed, (uint32_t)number) - packed);
	const size_t count = writer->attributes.count;

	if (!vector_reserve(&writer->attributes, count + size)) {
		fail(writer);
		return;
	}
	memcpy(writer->attributes.items + count, packed, size);
	writer->attributes.count += size;
}

static void add_text(struct writer *writer, const char *key, const char *text)
{
	if (text[0])
		add_attribute(writer, otlp_dictionary_attribute(&writer->dictionary, key, text, 0, ""));
}

static void add_thread(struct writer *writer, const struct export_labels *labels)
{
	const char *number = strrchr(labels->thread, ' '); /* in brackets, after the name */
	size_t size = number ? (size_t)(number - labels->thread) : 0;
	char thread[64];

	if (size >= sizeof(thread))
		size = text_cut(labels->thread, sizeof(thread) - 1);
	snprintf(thread, sizeof(thread), "%.*s", (int)size, labels->thread);
	if (labels->thread_id)
		add_attribute(writer, otlp_dictionary_attribute(&writer->dictionary, "thread.id", NULL,
		                                                labels->thread_id, ""));
	add_text(writer, "thread.name", thread);
}

static void add_database(struct writer *writer, const struct export_labels *labels)
{
	add_text(writer, "db.namespace", labels->database);
}

static void add_statement(struct writer *writer, const struct export_labels *labels)
{
	add_text(writer, "db.query.summary", labels->statement);
}

static void add_set(struct writer *writer, const struct export_labels *labels)
{
	struct label_pairs own = { .items = { 0 } };

	if (!label_pairs_add_set(&own, labels->labels))
		fail(writer);
	for (size_t i = 0; i < own.items.count; i++) {
		const struct label_pair *pair = &own.items.items[i];

		add_attribute(writer,
		              otlp_dictionary_attribute(&writer->dictionary, pair->key,
		                                        pair->is_number ? NULL : pair->text,
		                                        pair->is_number ? strtoll(pair->text, NULL, 10) : 0,
		                                        pair->unit ? pair->unit : ""));
	}
	label_pairs_free(&own);
}

/* Attributes of many labels that follow from a text and a number are looked up once. Equal texts have equal
 * pointers, see names.h. */
static void add_shared(struct writer *writer, const struct export_labels *labels, const char *text,
                       int64_t number, void (*add)(struct writer *writer, const struct export_labels *labels))
{
	const uint64_t words[] = { (uintptr_t)text, (uint64_t)number, (uintptr_t)add };
	const size_t start = writer->attributes.count;
	struct part *shared = index_item(&writer->text_index, hash_words(words, 3), &writer->texts);

	if (!shared || !vector_reserve(&writer->attributes, start + shared->size)) {
		fail(writer);
	} else if (shared->size) {
		memcpy(writer->attributes.items + start, writer->attributes.items + shared->start,
		       shared->size);
		writer->attributes.count += shared->size;
	} else {
		add(writer, labels);
		*shared = (struct part){ start, (uint32_t)(writer->attributes.count - start) };
	}
}

static void add_query(struct writer *writer, const struct export_labels *labels)
{
	int32_t *number = vector_at(&writer->queries, labels->query);

	if (!number || !labels->query_id[0]) {
		writer->dictionary.failed |= !number;
		return;
	}
	if (!*number)
		*number = otlp_dictionary_attribute(&writer->dictionary, "query_id", labels->query_id, 0, "");
	add_attribute(writer, *number);
}

/* The index of the labels' process. */
static uint32_t find_process(struct writer *writer, const struct export_labels *labels)
{
	const uint64_t words[] = { (uint64_t)labels->process_id, (uintptr_t)labels->program,
		                   (uintptr_t)labels->host };
	struct process *process =
		index_item(&writer->process_index, hash_words(words, 3), &writer->processes);

	if (!process) {
		fail(writer);
		return 0;
	}
	process->program = labels->program;
	process->host = labels->host;
	process->id = labels->process_id;
	return (uint32_t)(process - writer->processes.items);
}

/* NULL: no memory. */
static const struct labelled *find_labelled(struct writer *writer, const struct export_labels *labels)
{
	struct labelled *of = vector_at(&writer->labelled, labels->number);
	const size_t start = writer->attributes.count;

	if (!of || of->labels)
		return of;
	add_shared(writer, labels, labels->thread, labels->thread_id, add_thread);
	add_query(writer, labels);
	add_shared(writer, labels, labels->database, 0, add_database);
	add_shared(writer, labels, labels->statement, 0, add_statement);
	add_shared(writer, labels, labels->labels, 0, add_set);
	if (!vector_push(&writer->commons,
	                 (struct common){
				 .attributes = { start, (uint32_t)(writer->attributes.count - start) },
				 .link = otlp_dictionary_link(&writer->dictionary, labels->link),
			 }))
		return NULL;
	*of = (struct labelled){ labels, (uint32_t)writer->commons.count - 1, find_process(writer, labels) };
	return of;
}

/* --- samples ---------------------------------------------------------------------- */

/* Longest possible varints and their fields' heads. */
#define EVENTS_BYTES 48
#define EVENT_BYTES (10 + 8)

/* The index of a new item in `list`, from 1; 0: no memory. */
static int64_t begin_events(struct writer *writer, const struct export_sample *sample)
{
	const struct labelled *of = find_labelled(writer, sample->labels);

	if (!of || !vector_push(&writer->list,
	                        (struct events){
					.common = of->common,
					.stack = otlp_dictionary_stack(&writer->dictionary, sample->stack),
				}))
		return 0;
	const uint32_t place = (uint32_t)writer->list.count - 1;
	writer->samples_size += EVENTS_BYTES + writer->commons.items[of->common].attributes.size;
	return vector_push(&writer->processes.items[of->process].events, place) ? place + 1 : 0;
}

static bool add_sample(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;
	const int64_t key = (int64_t)((uint64_t)sample->labels->number << 32 | sample->stack->number);

	writer->rows.keys = 1;
	writer->rows.width = 2;
	otlp_dictionary_begin(&writer->dictionary);
	const size_t row = tally_row(&writer->rows, &key);
	if (row == TALLY_NONE)
		return false;
	int64_t *place = &tally_at(&writer->rows, row)[1];
	if (!*place && !(*place = begin_events(writer, sample)))
		return false;
	if (!writer->first_ns) {
		writer->first_ns = sample->time_ns;
		writer->period_ns = sample->period_ns;
	}
	writer->last_ns = sample->time_ns;
	if (writer->period_ns != sample->period_ns)
		writer->period_ns = 0; /* values are correct without a period */
	writer->samples_size += EVENT_BYTES;
	writer->list.items[*place - 1].count++;
	return !writer->dictionary.failed &&
	       vector_push(&writer->events,
	                   (struct event){ (uint32_t)*place - 1, sample->value, (uint64_t)sample->time_ns });
}

static size_t size_of(const void *of)
{
	const struct writer *writer = of;

	return writer->dictionary.bytes.count + writer->samples_size;
}

/* --- profiles ---------------------------------------------------------------------- */

static void order_events(struct writer *writer)
{
	const size_t count = writer->events.count;
	uint32_t end = 0;

	writer->values = calloc(count + 1, sizeof(*writer->values));
	writer->times = calloc(count + 1, sizeof(*writer->times));
	if (!writer->values || !writer->times) {
		fail(writer);
		return;
	}
	for (size_t i = 0; i < writer->list.count; i++) {
		writer->list.items[i].end = end;
		end += writer->list.items[i].count;
	}
	for (size_t i = 0; i < count; i++) {
		const struct event *event = &writer->events.items[i];
		const size_t at = writer->list.items[event->events].end++;

		writer->values[at] = event->value;
		writer->times[at] = event->time;
	}
}

/* Fields of messages, see otlp_profiles.proto. */
#define SAMPLE_TAG PROTOBUF_BYTES(2)
#define STACK_TAG PROTOBUF_NUMBER(1)
#define ATTRIBUTES_TAG PROTOBUF_BYTES(2)
#define LINK_TAG PROTOBUF_NUMBER(3)
#define VALUES_TAG PROTOBUF_BYTES(4)
#define TIMES_TAG PROTOBUF_BYTES(5)

/* Adds the Profile.samples of the events to `samples`. */
static void pack_sample(struct writer *writer, const struct events *events)
{
	const struct common common = writer->commons.items[events->common];
	const struct part attributes = common.attributes;
	const int64_t *values = writer->values + events->end - events->count;
	const size_t times_size = events->count * sizeof(*writer->times);
	size_t values_size = 0;

	for (uint32_t i = 0; i < events->count; i++)
		values_size += protobuf_size((uint64_t)values[i]);
	const size_t size = 1 + protobuf_size((uint32_t)events->stack) +
	                    (attributes.size ? 1 + protobuf_size(attributes.size) + attributes.size : 0) +
	                    (common.link ? 1 + protobuf_size((uint32_t)common.link) : 0) + 1 +
	                    protobuf_size(values_size) + values_size + 1 + protobuf_size(times_size) +
	                    times_size;
	if (!vector_reserve(&writer->samples, writer->samples.count + size + 1 + PROTOBUF_NUMBER_MAX)) {
		fail(writer);
		return;
	}
	uint8_t *to = writer->samples.items + writer->samples.count;
	to = protobuf_put_bytes(to, SAMPLE_TAG, size);
	*to++ = STACK_TAG;
	to = protobuf_put(to, (uint32_t)events->stack);
	if (attributes.size) {
		to = protobuf_put_bytes(to, ATTRIBUTES_TAG, attributes.size);
		to = mempcpy(to, writer->attributes.items + attributes.start, attributes.size);
	}
	if (common.link) {
		*to++ = LINK_TAG;
		to = protobuf_put(to, (uint32_t)common.link);
	}
	to = protobuf_put_bytes(to, VALUES_TAG, values_size);
	for (uint32_t i = 0; i < events->count; i++)
		to = protobuf_put(to, (uint64_t)values[i]);
	to = protobuf_put_bytes(to, TIMES_TAG, times_size);
	/* Little-endian, like the processor. */
	to = mempcpy(to, writer->times + events->end - events->count, times_size);
	writer->samples.count = (size_t)(to - writer->samples.items);
}

/* The types' names in the semantic conventions. */
static const char *type_name(const char *trace_type)
{
	return !strcmp(trace_type, "CPU")                                   ? "cpu"
	       : !strcmp(trace_type, "OffCPU")                              ? "off_cpu"
	       : !strcmp(trace_type, "Real") || !strcmp(trace_type, "Wall") ? "wall"
	                                                                    : trace_type;
}

static void fill_type(struct writer *writer, Otlp__ValueType *type)
{
	struct otlp_dictionary *dictionary = &writer->dictionary;

	type->type_strindex = otlp_dictionary_string(dictionary, type_name(writer->info->trace_type));
	type->unit_strindex = otlp_dictionary_string(
		dictionary, strcmp(writer->info->unit, UNIT_NS) == 0 ? "nanoseconds" : writer->info->unit);
}

/* The fields of a profile after its samples. */
static void fill_times(const struct writer *writer, Otlp__Profile *profile, Otlp__ValueType *type)
{
	profile->time_unix_nano = (uint64_t)writer->first_ns;
	profile->duration_nano = (uint64_t)(writer->last_ns - writer->first_ns);
	if (writer->period_ns) {
		profile->period_type = type;
		profile->period = writer->period_ns;
	}
}

/* Writes the tag of the enclosing message's field, and the size. */
static void write_head(struct writer *writer, uint8_t tag, size_t size)
{
	uint8_t head[1 + PROTOBUF_NUMBER_MAX];
	const uint8_t *end = protobuf_put_bytes(head, tag, size);

	fwrite(head, 1, (size_t)(end - head), writer->out);
}

static size_t size_with_head(size_t size)
{
	return 1 + protobuf_size(size) + size;
}

/* A message without the samples, by far its largest part, in pieces that are packed separately. */
struct pieces {
	Otlp__ResourceProfiles resource;
	Otlp__ScopeProfiles scope;
	Otlp__Profile type, times;
};

#define PACK(writer, kind, message)                                                                          \
	do {                                                                                                 \
		uint8_t *packed_ = malloc(kind##__get_packed_size(message) + 1);                             \
		if (packed_)                                                                                 \
			fwrite(packed_, 1, kind##__pack(message, packed_), (writer)->out);                   \
		else                                                                                         \
			fail(writer);                                                                        \
		free(packed_);                                                                               \
	} while (0)

static void write_pieces(struct writer *writer, const struct pieces *pieces)
{
	const size_t profile = otlp__profile__get_packed_size(&pieces->type) + writer->samples.count +
	                       otlp__profile__get_packed_size(&pieces->times);
	const size_t scope = otlp__scope_profiles__get_packed_size(&pieces->scope) + size_with_head(profile);
	const size_t resource =
		otlp__resource_profiles__get_packed_size(&pieces->resource) + size_with_head(scope);

	write_head(writer, PROTOBUF_BYTES(1), resource); /* ProfilesData.resource_profiles */
	PACK(writer, otlp__resource_profiles, &pieces->resource);
	write_head(writer, PROTOBUF_BYTES(2), scope); /* ResourceProfiles.scope_profiles */
	PACK(writer, otlp__scope_profiles, &pieces->scope);
	write_head(writer, PROTOBUF_BYTES(2), profile); /* ScopeProfiles.profiles */
	PACK(writer, otlp__profile, &pieces->type);
	fwrite(writer->samples.items, 1, writer->samples.count, writer->out);
	PACK(writer, otlp__profile, &pieces->times);
	writer->dictionary.failed |= ferror(writer->out) != 0;
}

static void write_process(struct writer *writer, struct process *process)
{
	Otlp__Scope scope = OTLP__SCOPE__INIT;
	Otlp__ValueType type = OTLP__VALUE_TYPE__INIT;
	struct otlp_resource resource = { .attributes = NULL };
	struct pieces pieces = { OTLP__RESOURCE_PROFILES__INIT, OTLP__SCOPE_PROFILES__INIT,
		                 OTLP__PROFILE__INIT, OTLP__PROFILE__INIT };

	if (!process->events.count)
		return;
	if (!otlp_resource_fill(&resource, writer->info->service, process->program, process->host,
	                        process->id))
		fail(writer);
	for (size_t i = 0; !writer->dictionary.failed && i < process->events.count; i++)
		pack_sample(writer, &writer->list.items[process->events.items[i]]);
	fill_type(writer, &type);
	scope.name = (char *)"queryprof";
	scope.version = (char *)QUERYPROF_VERSION;
	pieces.resource.resource = &resource.message;
	pieces.scope.scope = &scope;
	pieces.type.sample_type = &type;
	fill_times(writer, &pieces.times, &type);
	if (!writer->dictionary.failed)
		write_pieces(writer, &pieces);
	process->events.count = writer->samples.count = 0;
	otlp_resource_free(&resource);
}

/* Writes all samples, and drops the data of their labels. */
static void write_profiles(struct writer *writer)
{
	order_events(writer);
	for (size_t i = 0; i < writer->processes.count && !writer->dictionary.failed; i++)
		write_process(writer, &writer->processes.items[i]);
	free(writer->values);
	free(writer->times);
	writer->values = NULL;
	writer->times = NULL;
	writer->list.count = writer->events.count = writer->labelled.count = writer->queries.count = 0;
	writer->commons.count = writer->attributes.count = writer->texts.count = 0;
	index_free(&writer->text_index);
	tally_free(&writer->rows);
	writer->first_ns = 0;
}

/* Whether the row's labels are still needed. */
static bool stays(const struct writer *writer, size_t row, int64_t now_ns)
{
	const uint64_t key = (uint64_t)tally_at(&writer->rows, row)[0];

	return writer->labelled.items[key >> 32].labels->last_ns >= now_ns;
}

static bool flush_profiles(void *of, int64_t now_ns, size_t *left)
{
	struct writer *writer = of;
	bool *is_kept = calloc(writer->rows.count + 1, sizeof(*is_kept));

	if (!is_kept)
		return false;
	if (writer->events.count >= EVENTS_MAX)
		write_profiles(writer);
	for (size_t i = 0; i < writer->rows.count; i++)
		is_kept[i] = stays(writer, i, now_ns);
	if (writer->rows.count)
		tally_keep(&writer->rows, is_kept);
	free(is_kept);
	for (size_t i = 0; i < writer->labelled.count; i++) {
		struct labelled *labelled = &writer->labelled.items[i];

		if (!labelled->labels || labelled->labels->last_ns >= now_ns)
			continue;
		if (labelled->labels->query < writer->queries.count)
			writer->queries.items[labelled->labels->query] = 0;
		labelled->labels = NULL;
	}
	*left += writer->rows.count;
	return !writer->dictionary.failed;
}

static bool end_profiles(void *ended, bool complete)
{
	struct writer *writer = ended;

	if (complete) {
		otlp_dictionary_begin(&writer->dictionary);
		write_profiles(writer);
		write_head(writer, PROTOBUF_BYTES(2),
		           writer->dictionary.bytes.count); /* ProfilesData.dictionary */
		fwrite(writer->dictionary.bytes.items, 1, writer->dictionary.bytes.count, writer->out);
		writer->dictionary.failed |= ferror(writer->out) != 0;
	}
	const bool fine = !writer->dictionary.failed;
	for (size_t i = 0; i < writer->processes.count; i++)
		vector_free(&writer->processes.items[i].events);
	free(writer->values);
	free(writer->times);
	vector_free(&writer->processes);
	vector_free(&writer->list);
	vector_free(&writer->events);
	vector_free(&writer->labelled);
	vector_free(&writer->commons);
	vector_free(&writer->queries);
	vector_free(&writer->attributes);
	vector_free(&writer->texts);
	vector_free(&writer->samples);
	tally_free(&writer->rows);
	index_free(&writer->text_index);
	index_free(&writer->process_index);
	otlp_dictionary_free(&writer->dictionary);
	return fine;
}

const struct export_format export_otlp = {
	.name = "otlp",
	.summary = "OpenTelemetry's profiles (v1development); ns",
	.is_binary = true,
	.has_links = true,
	.writer_size = sizeof(struct writer),
	.add = add_sample,
	.flush = flush_profiles,
	.size = size_of,
	.end = end_profiles,
};
