/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's profiles: the message ProfilesData, as POST /v1development/profiles takes it.
 *
 * One resource a process, with one profile: a thread, a query and its labels are attributes of
 * samples. Samples of one stack and one set of attributes are one, with a value and a time each.
 * Pieces that follow each other are one message where all fields are repeated: so the dictionary grows
 * item by item, and comes last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/interner.h"
#include "base/tally.h"
#include "base/text.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/resource.h"
#include "label/pairs.h"
#include "queryprof.h"
#include "store/store.h"
#include "wire/sample_type.h"

#include "otlp_profiles.pb-c.h"

#define ATTRIBUTES_MAX (6 + LABELS_OF_SET_MAX)

/* The dictionary's numbers of labels. */
struct attributes {
	const struct export_labels *labels;
	int32_t link;
	uint32_t count;
	int32_t numbers[ATTRIBUTES_MAX];
};

/* Samples of one stack and one set of labels. */
struct events {
	const struct export_labels *labels; /* NULL: there are none yet */
	uint32_t attributes;                /* the place of what is written of them */
	int32_t stack;
	size_t count, end; /* of its events, once they are in order: their end in `values` and `times` */
};

struct event {
	uint32_t events; /* the place in `list` */
	int64_t value;
	uint64_t time;
};

/* By the number of the export's; 0: not written. */
struct numbers {
	VECTOR(int32_t) list;
};

struct writer {
	EXPORT_WRITER;
	struct tally rows; /* by the numbers of stack and labels; as `list` */
	VECTOR(struct events) list;
	VECTOR(struct event) events; /* in the order of time */
	int64_t *values;             /* those of each item of `list` together, in the order of time */
	uint64_t *times;
	struct index label_index;
	VECTOR(struct attributes) attribute_list;
	struct index process_index;
	VECTOR(struct numbers) processes; /* of each the places of its events in `list` */
	int64_t first_ns, last_ns, period_ns;
	size_t samples_size; /* in bytes, at most */

	/* All numbers are of a table, whose item 0 is empty. */
	bool failed;
	VECTOR(uint8_t) dictionary; /* grows with each new item */
	struct interner strings;
	struct index functions, attributes, links;
	struct numbers locations, mappings, stacks;
	int32_t location_count, mapping_count, stack_count;
};

/* --- the dictionary --------------------------------------------------------------- */

static void write_dictionary(struct writer *writer, const Otlp__Dictionary *dictionary)
{
	size_t size = otlp__dictionary__get_packed_size(dictionary), count = writer->dictionary.count;

	if (writer->failed || !vector_reserve(&writer->dictionary, count + size)) {
		writer->failed = true;
		return;
	}
	otlp__dictionary__pack(dictionary, writer->dictionary.items + count);
	writer->dictionary.count += size;
}

/* One more item of a table. */
#define WRITE_ITEM(writer, table, item)                                                                      \
	do {                                                                                                 \
		Otlp__Dictionary dictionary_ = OTLP__DICTIONARY__INIT;                                       \
		__typeof__(*dictionary_.table) items_[] = { item };                                          \
		dictionary_.n_##table = 1;                                                                   \
		dictionary_.table = items_;                                                                  \
		write_dictionary(writer, &dictionary_);                                                      \
	} while (0)

static int32_t string_number(struct writer *writer, const char *text)
{
	size_t before = writer->strings.texts.count;
	uint32_t number = interner_number(&writer->strings, text);

	if (number == INTERNER_NO_MEMORY)
		writer->failed = true;
	else if (writer->strings.texts.count != before)
		WRITE_ITEM(writer, string_table, (char *)text);
	return (int32_t)number;
}

/* The number of a key; *is_new: the item is to be written. */
static int32_t number_of(struct writer *writer, struct index *index, struct hash key, bool *is_new)
{
	uint32_t number = index_find(index, key);

	*is_new = number == INDEX_NONE;
	if (*is_new && (number = index_add(index, key)) == INDEX_NONE) {
		writer->failed = true;
		return 0;
	}
	return (int32_t)number + 1;
}

static int32_t write_function(struct writer *writer, const struct export_line *line)
{
	Otlp__Function function = OTLP__FUNCTION__INIT;
	bool is_new;

	function.name_strindex = string_number(writer, line->function);
	function.system_name_strindex =
		string_number(writer, line->symbol[0] ? line->symbol : line->function);
	function.filename_strindex = string_number(writer, line->file);
	const uint64_t words[] = { (uint64_t)function.name_strindex, (uint64_t)function.system_name_strindex,
		                   (uint64_t)function.filename_strindex };
	int32_t number = number_of(writer, &writer->functions, hash_words(words, 3), &is_new);
	if (is_new)
		WRITE_ITEM(writer, function_table, &function);
	return number;
}

/* `text` NULL: a number. */
static int32_t write_attribute(struct writer *writer, const char *key, const char *text, int64_t value,
                               const char *unit)
{
	Otlp__AnyValue any = OTLP__ANY_VALUE__INIT;
	Otlp__Attribute attribute = OTLP__ATTRIBUTE__INIT;
	bool is_new;

	attribute.key_strindex = string_number(writer, key);
	attribute.unit_strindex = string_number(writer, unit);
	attribute.value = &any;
	any.value_case = text ? OTLP__ANY_VALUE__VALUE_STRING_VALUE : OTLP__ANY_VALUE__VALUE_INT_VALUE;
	if (text)
		any.string_value = (char *)text;
	else
		any.int_value = value;
	const struct hash of_text = hash_bytes(text ? text : "", text ? strlen(text) : 0);
	const uint64_t words[] = { (uint64_t)attribute.key_strindex,
		                   (uint64_t)attribute.unit_strindex,
		                   of_text.first,
		                   of_text.second,
		                   text ? 1 : 0,
		                   text ? 0 : (uint64_t)value };
	int32_t number = number_of(writer, &writer->attributes, hash_words(words, 6), &is_new);
	if (is_new)
		WRITE_ITEM(writer, attribute_table, &attribute);
	return number;
}

/* The place of what has the number in a table of numbers; NULL: no memory. */
static int32_t *number_slot(struct writer *writer, struct numbers *numbers, uint32_t number)
{
	int32_t *at = vector_at(&numbers->list, number);

	writer->failed |= !at;
	return at;
}

static int32_t write_mapping(struct writer *writer, const struct export_module *module)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT;
	int32_t *number = module ? number_slot(writer, &writer->mappings, module->number) : NULL, build_id;

	if (!number || *number)
		return number ? *number : 0;
	mapping.memory_start = module->start;
	mapping.memory_limit = module->end;
	mapping.filename_strindex = string_number(writer, module->path);
	if (module->build_id[0]) {
		build_id =
			write_attribute(writer, "process.executable.build_id.gnu", module->build_id, 0, "");
		mapping.n_attribute_indices = 1;
		mapping.attribute_indices = &build_id;
	}
	WRITE_ITEM(writer, mapping_table, &mapping);
	return *number = ++writer->mapping_count;
}

static int32_t write_location(struct writer *writer, const struct export_frame *frame)
{
	Otlp__Location location = OTLP__LOCATION__INIT;
	int32_t *number = number_slot(writer, &writer->locations, frame->number);

	if (!number || *number)
		return number ? *number : 0;
	Otlp__Line *lines = calloc(frame->line_count, sizeof(*lines));
	Otlp__Line **pointers = calloc(frame->line_count, sizeof(Otlp__Line *));
	writer->failed |= !lines || !pointers;
	for (size_t i = 0; lines && pointers && i < frame->line_count; i++) {
		otlp__line__init(&lines[i]);
		lines[i].function_index = write_function(writer, &frame->lines[i]);
		lines[i].line = frame->lines[i].line;
		pointers[i] = &lines[i];
		location.n_lines = i + 1;
	}
	location.lines = pointers;
	location.mapping_index = write_mapping(writer, frame->module);
	location.address = frame->address & ~STORE_NOWHERE;
	WRITE_ITEM(writer, location_table, &location);
	free(lines);
	free(pointers);
	return *number = ++writer->location_count;
}

static int32_t write_stack(struct writer *writer, const struct export_stack *stack)
{
	Otlp__Stack written = OTLP__STACK__INIT;
	int32_t *number = number_slot(writer, &writer->stacks, stack->number), *locations;

	if (!number || *number)
		return number ? *number : 0;
	locations = calloc(stack->count + 1, sizeof(*locations));
	writer->failed |= !locations;
	for (size_t i = 0; locations && i < stack->count; i++)
		locations[i] = write_location(writer, stack->frames[i]);
	written.n_location_indices = locations ? stack->count : 0;
	written.location_indices = locations;
	WRITE_ITEM(writer, stack_table, &written);
	free(locations);
	return *number = ++writer->stack_count;
}

static void write_zeros(struct writer *writer)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT;
	Otlp__Location location = OTLP__LOCATION__INIT;
	Otlp__Function function = OTLP__FUNCTION__INIT;
	Otlp__Link link = OTLP__LINK__INIT;
	Otlp__Attribute attribute = OTLP__ATTRIBUTE__INIT;
	Otlp__Stack stack = OTLP__STACK__INIT;

	string_number(writer, "");
	WRITE_ITEM(writer, mapping_table, &mapping);
	WRITE_ITEM(writer, location_table, &location);
	WRITE_ITEM(writer, function_table, &function);
	WRITE_ITEM(writer, link_table, &link);
	WRITE_ITEM(writer, attribute_table, &attribute);
	WRITE_ITEM(writer, stack_table, &stack);
}

/* --- samples ---------------------------------------------------------------------- */

static void add_attribute(struct attributes *attributes, int32_t number)
{
	attributes->numbers[attributes->count++] = number;
}

static void add_label(struct writer *writer, struct attributes *attributes, const struct label_pair *pair)
{
	add_attribute(attributes, write_attribute(writer, pair->key, pair->is_number ? NULL : pair->text,
	                                          pair->is_number ? strtoll(pair->text, NULL, 10) : 0,
	                                          pair->unit ? pair->unit : ""));
}

/* The span that the sample was taken in. */
static int32_t write_link(struct writer *writer, const char *digits)
{
	uint8_t ids[24];
	Otlp__Link link = OTLP__LINK__INIT;
	bool is_new;

	if (!digits[0])
		return 0;
	for (size_t i = 0; i < sizeof(ids); i++) {
		const char two[] = { digits[2 * i], digits[2 * i + 1], 0 };
		char *end;

		ids[i] = (uint8_t)strtoul(two, &end, 16);
		if (*end)
			return 0;
	}
	int32_t number = number_of(writer, &writer->links, hash_bytes(ids, sizeof(ids)), &is_new);
	link.trace_id = (ProtobufCBinaryData){ 16, ids };
	link.span_id = (ProtobufCBinaryData){ 8, ids + 16 };
	if (is_new)
		WRITE_ITEM(writer, link_table, &link);
	return number;
}

static void write_labels(struct writer *writer, struct attributes *to, const struct export_labels *labels)
{
	const char *number = strrchr(labels->thread, ' '); /* in brackets, behind the name */
	size_t size = number ? (size_t)(number - labels->thread) : 0;
	char thread[64];
	const struct {
		const char *key, *text;
	} texts[] = {
		{ "thread.name", thread },
		{ "query_id", labels->query_id },
		{ "db.namespace", labels->database },
		{ "db.query.summary", labels->statement },
	};
	struct label_pairs own = { .items = { 0 } };

	to->labels = labels;
	if (size >= sizeof(thread))
		size = text_cut(labels->thread, sizeof(thread) - 1);
	snprintf(thread, sizeof(thread), "%.*s", (int)size, labels->thread);
	if (labels->thread_id)
		add_attribute(to, write_attribute(writer, "thread.id", NULL, labels->thread_id, ""));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].text[0])
			add_attribute(to, write_attribute(writer, texts[i].key, texts[i].text, 0, ""));
	writer->failed |= !label_pairs_add_set(&own, labels->labels);
	for (size_t i = 0; i < own.items.count; i++)
		add_label(writer, to, &own.items.items[i]);
	to->link = write_link(writer, labels->link);
	label_pairs_free(&own);
}

/* False: no memory. */
static bool add_to_process(struct writer *writer, const struct events *events)
{
	const struct export_labels *labels = events->labels;
	/* The names of programs and hosts are kept once. */
	const uint64_t words[] = { (uint64_t)labels->process_id, (uintptr_t)labels->program,
		                   (uintptr_t)labels->host };
	struct numbers *process =
		index_item(&writer->process_index, hash_words(words, 3), &writer->processes);

	return process && vector_push(&process->list, (int32_t)(events - writer->list.items));
}

/* Longest possible varints and their fields' heads. */
#define NUMBER_BYTES 5
#define EVENTS_BYTES 48
#define EVENT_BYTES (10 + 8)

static void begin_events(struct writer *writer, struct events *events, const struct export_sample *sample)
{
	const uint64_t number = sample->labels->number;
	struct attributes *attributes =
		index_item(&writer->label_index, hash_words(&number, 1), &writer->attribute_list);

	if (!attributes) {
		writer->failed = true;
		return;
	}
	if (!attributes->labels)
		write_labels(writer, attributes, sample->labels);
	events->labels = sample->labels;
	events->attributes = (uint32_t)(attributes - writer->attribute_list.items);
	events->stack = write_stack(writer, sample->stack);
	writer->failed |= !add_to_process(writer, events);
	writer->samples_size += EVENTS_BYTES + attributes->count * NUMBER_BYTES;
}

static bool add_sample(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;
	const int64_t key = (int64_t)sample->labels->number << 32 | sample->stack->number;

	writer->rows.keys = writer->rows.width = 1;
	const size_t row = tally_row(&writer->rows, &key);
	struct events *events = row == TALLY_NONE ? NULL : vector_at(&writer->list, row);
	if (!events)
		return false;
	if (!writer->dictionary.count)
		write_zeros(writer);
	if (!events->labels)
		begin_events(writer, events, sample);
	if (!writer->first_ns) {
		writer->first_ns = sample->time_ns;
		writer->period_ns = sample->period_ns;
	}
	writer->last_ns = sample->time_ns;
	if (writer->period_ns != sample->period_ns)
		writer->period_ns = 0; /* values are right without one */
	writer->samples_size += EVENT_BYTES;
	events->count++;
	return !writer->failed && vector_push(&writer->events, (struct event){ (uint32_t)row, sample->value,
	                                                                       (uint64_t)sample->time_ns });
}

static size_t size_of(const void *of)
{
	const struct writer *writer = of;

	return writer->dictionary.count + writer->samples_size;
}

/* --- profiles ---------------------------------------------------------------------- */

static void order_events(struct writer *writer)
{
	const size_t count = writer->events.count;
	size_t end = 0;

	writer->values = calloc(count + 1, sizeof(*writer->values));
	writer->times = calloc(count + 1, sizeof(*writer->times));
	if (!writer->values || !writer->times) {
		writer->failed = true;
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

static void fill_sample(const struct writer *writer, Otlp__Sample *sample, const struct events *events)
{
	struct attributes *attributes = &writer->attribute_list.items[events->attributes];

	otlp__sample__init(sample);
	sample->n_attribute_indices = attributes->count;
	sample->attribute_indices = attributes->numbers;
	sample->link_index = attributes->link;
	sample->stack_index = events->stack;
	sample->n_values = sample->n_timestamps_unix_nano = events->count;
	sample->values = writer->values + events->end - events->count;
	sample->timestamps_unix_nano = writer->times + events->end - events->count;
}

/* The types' names in the semantic conventions. */
static const char *type_name(const char *trace_type)
{
	return !strcmp(trace_type, "CPU")                                   ? "cpu"
	       : !strcmp(trace_type, "OffCPU")                              ? "off_cpu"
	       : !strcmp(trace_type, "Real") || !strcmp(trace_type, "Wall") ? "wall"
	                                                                    : trace_type;
}

static void fill_profile(struct writer *writer, Otlp__Profile *profile, Otlp__ValueType *type)
{
	type->type_strindex = string_number(writer, type_name(writer->info->trace_type));
	type->unit_strindex = string_number(
		writer, strcmp(writer->info->unit, UNIT_NS) == 0 ? "nanoseconds" : writer->info->unit);
	profile->sample_type = type;
	profile->time_unix_nano = (uint64_t)writer->first_ns;
	profile->duration_nano = (uint64_t)(writer->last_ns - writer->first_ns);
	if (writer->period_ns) {
		profile->period_type = type;
		profile->period = writer->period_ns;
	}
}

static void write_message(struct writer *writer, const Otlp__ProfilesData *data)
{
	size_t size = otlp__profiles_data__get_packed_size(data);
	uint8_t *packed = malloc(size);

	if (packed)
		otlp__profiles_data__pack(data, packed);
	writer->failed |= !packed || fwrite(packed, 1, size, writer->out) != size;
	free(packed);
}

/* Field 2 of the message. */
static void end_dictionary(struct writer *writer)
{
	size_t size = writer->dictionary.count;

	fputc(2 << 3 | 2, writer->out);
	for (; size >= 0x80; size >>= 7)
		fputc((int)(size & 0x7f) | 0x80, writer->out);
	fputc((int)size, writer->out);
	fwrite(writer->dictionary.items, 1, writer->dictionary.count, writer->out);
	writer->failed |= ferror(writer->out) != 0;
}

/* A resource as a message; the texts are the resource's. */
struct resource_message {
	struct resource resource;
	Otlp__Resource message;
	Otlp__KeyValue *attributes, **pointers;
	Otlp__AnyValue *values;
};

static bool fill_resource(struct writer *writer, struct resource_message *to,
                          const struct export_labels *labels)
{
	if (!resource_fill(&to->resource, writer->info->service, labels->program, labels->host,
	                   labels->process_id))
		return false;
	size_t count = to->resource.items.count;
	to->attributes = calloc(count, sizeof(*to->attributes));
	to->values = calloc(count, sizeof(*to->values));
	to->pointers = calloc(count, sizeof(Otlp__KeyValue *));
	if (!to->attributes || !to->values || !to->pointers)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct resource_item *item = &to->resource.items.items[i];

		otlp__key_value__init(&to->attributes[i]);
		otlp__any_value__init(&to->values[i]);
		to->values[i].value_case =
			item->text ? OTLP__ANY_VALUE__VALUE_STRING_VALUE : OTLP__ANY_VALUE__VALUE_INT_VALUE;
		if (item->text)
			to->values[i].string_value = item->text;
		else
			to->values[i].int_value = item->number;
		to->attributes[i].key = item->key;
		to->attributes[i].value = &to->values[i];
		to->pointers[i] = &to->attributes[i];
	}
	otlp__resource__init(&to->message);
	to->message.n_attributes = count;
	to->message.attributes = to->pointers;
	return true;
}

static void free_resource(struct resource_message *message)
{
	resource_free(&message->resource);
	free(message->attributes);
	free(message->values);
	free(message->pointers);
}

static void write_resource(struct writer *writer, const struct numbers *process)
{
	Otlp__ProfilesData data = OTLP__PROFILES_DATA__INIT;
	Otlp__ResourceProfiles resource_profiles = OTLP__RESOURCE_PROFILES__INIT,
			       *of_resources[] = { &resource_profiles };
	Otlp__ScopeProfiles scope_profiles = OTLP__SCOPE_PROFILES__INIT, *of_scopes[] = { &scope_profiles };
	Otlp__Profile profile = OTLP__PROFILE__INIT, *profiles[] = { &profile };
	Otlp__ValueType type = OTLP__VALUE_TYPE__INIT;
	Otlp__Scope scope = OTLP__SCOPE__INIT;
	struct resource_message resource = { .attributes = NULL };
	const int32_t *events = process->list.items;
	size_t count = process->list.count;
	Otlp__Sample *samples = calloc(count, sizeof(*samples));
	Otlp__Sample **messages = calloc(count, sizeof(Otlp__Sample *));

	writer->failed |= !samples || !messages ||
	                  !fill_resource(writer, &resource, writer->list.items[events[0]].labels);
	for (size_t i = 0; !writer->failed && i < count; i++) {
		fill_sample(writer, &samples[i], &writer->list.items[events[i]]);
		messages[i] = &samples[i];
	}
	profile.n_samples = count;
	profile.samples = messages;
	fill_profile(writer, &profile, &type);
	scope.name = (char *)"queryprof";
	scope.version = (char *)QUERYPROF_VERSION;
	scope_profiles.scope = &scope;
	scope_profiles.n_profiles = 1;
	scope_profiles.profiles = profiles;
	resource_profiles.resource = &resource.message;
	resource_profiles.n_scope_profiles = 1;
	resource_profiles.scope_profiles = of_scopes;
	data.n_resource_profiles = 1;
	data.resource_profiles = of_resources;
	if (!writer->failed)
		write_message(writer, &data);
	free_resource(&resource);
	free(samples);
	free(messages);
}

static bool end_profiles(void *ended, bool complete)
{
	struct writer *writer = ended;

	if (complete) {
		if (!writer->dictionary.count)
			write_zeros(writer);
		order_events(writer);
		for (size_t i = 0; i < writer->processes.count && !writer->failed; i++)
			write_resource(writer, &writer->processes.items[i]);
		if (!writer->failed)
			end_dictionary(writer);
	}
	for (size_t i = 0; i < writer->processes.count; i++)
		vector_free(&writer->processes.items[i].list);
	vector_free(&writer->list);
	vector_free(&writer->events);
	free(writer->values);
	free(writer->times);
	vector_free(&writer->processes);
	vector_free(&writer->attribute_list);
	vector_free(&writer->dictionary);
	vector_free(&writer->locations.list);
	vector_free(&writer->mappings.list);
	vector_free(&writer->stacks.list);
	interner_free(&writer->strings);
	tally_free(&writer->rows);
	index_free(&writer->label_index);
	index_free(&writer->process_index);
	index_free(&writer->functions);
	index_free(&writer->attributes);
	index_free(&writer->links);
	return !writer->failed;
}

const struct export_format export_otlp = {
	.name = "otlp",
	.summary = "OpenTelemetry's profiles (v1development); ns",
	.is_binary = true,
	.has_links = true,
	.writer_size = sizeof(struct writer),
	.add = add_sample,
	.size = size_of,
	.end = end_profiles,
};
