/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message may consist of consecutive pieces with only repeated fields, so the dictionary is written item by
 * item.
 */
#include "export/otlp_dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#include "otlp_profiles.pb-c.h"

static void write_items(struct otlp_dictionary *dictionary, const Otlp__Dictionary *items)
{
	const size_t size = otlp__dictionary__get_packed_size(items), count = dictionary->bytes.count;

	if (dictionary->failed || !vector_reserve(&dictionary->bytes, count + size)) {
		dictionary->failed = true;
		return;
	}
	otlp__dictionary__pack(items, dictionary->bytes.items + count);
	dictionary->bytes.count += size;
}

/* Appends an item to a table. */
#define WRITE_ITEM(dictionary, table, item)                                                                  \
	do {                                                                                                 \
		Otlp__Dictionary packed_ = OTLP__DICTIONARY__INIT;                                           \
		__typeof__(*packed_.table) items_[] = { item };                                              \
		packed_.n_##table = 1;                                                                       \
		packed_.table = items_;                                                                      \
		write_items(dictionary, &packed_);                                                           \
	} while (0)

int32_t otlp_dictionary_string(struct otlp_dictionary *dictionary, const char *text)
{
	size_t before = dictionary->strings.texts.count;
	uint32_t number = interner_number(&dictionary->strings, text);

	if (number == INTERNER_NO_MEMORY)
		dictionary->failed = true;
	else if (dictionary->strings.texts.count != before)
		WRITE_ITEM(dictionary, string_table, (char *)text);
	return (int32_t)number;
}

/* The number of a key; *is_new: the item must be written. */
static int32_t number_of(struct otlp_dictionary *dictionary, struct tally *numbers, struct hash key,
                         bool *is_new)
{
	const size_t before = numbers->count;

	numbers->keys = numbers->width = 2;
	const size_t row = tally_row(numbers, (const int64_t[]){ (int64_t)key.first, (int64_t)key.second });
	*is_new = numbers->count != before;
	if (row == TALLY_NONE) {
		dictionary->failed = true;
		return 0;
	}
	return (int32_t)row + 1;
}

static int32_t write_function(struct otlp_dictionary *dictionary, const struct export_line *line)
{
	Otlp__Function function = OTLP__FUNCTION__INIT;
	bool is_new;

	function.name_strindex = otlp_dictionary_string(dictionary, line->function);
	function.system_name_strindex =
		otlp_dictionary_string(dictionary, line->symbol[0] ? line->symbol : line->function);
	function.filename_strindex = otlp_dictionary_string(dictionary, line->file);
	const uint64_t words[] = { (uint64_t)function.name_strindex, (uint64_t)function.system_name_strindex,
		                   (uint64_t)function.filename_strindex };
	int32_t number = number_of(dictionary, &dictionary->functions, hash_words(words, 3), &is_new);
	if (is_new)
		WRITE_ITEM(dictionary, function_table, &function);
	return number;
}

int32_t otlp_dictionary_attribute(struct otlp_dictionary *dictionary, const char *key, const char *text,
                                  int64_t value, const char *unit)
{
	Otlp__AnyValue any = OTLP__ANY_VALUE__INIT;
	Otlp__Attribute attribute = OTLP__ATTRIBUTE__INIT;
	bool is_new;

	attribute.key_strindex = otlp_dictionary_string(dictionary, key);
	attribute.unit_strindex = otlp_dictionary_string(dictionary, unit);
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
	int32_t number = number_of(dictionary, &dictionary->attributes, hash_words(words, 6), &is_new);
	if (is_new)
		WRITE_ITEM(dictionary, attribute_table, &attribute);
	return number;
}

/* The slot for this number in a table of numbers; NULL: no memory. */
static int32_t *number_slot(struct otlp_dictionary *dictionary, struct otlp_numbers *numbers, uint32_t number)
{
	int32_t *at = vector_at(&numbers->list, number);

	dictionary->failed |= !at;
	return at;
}

static int32_t write_mapping(struct otlp_dictionary *dictionary, const struct export_module *module)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT;
	int32_t *number = module ? number_slot(dictionary, &dictionary->mappings, module->number) : NULL,
		build_id;

	if (!number || *number)
		return number ? *number : 0;
	mapping.memory_start = module->start;
	mapping.memory_limit = module->end;
	mapping.filename_strindex = otlp_dictionary_string(dictionary, module->path);
	if (module->build_id[0]) {
		build_id = otlp_dictionary_attribute(dictionary, "process.executable.build_id.gnu",
		                                     module->build_id, 0, "");
		mapping.n_attribute_indices = 1;
		mapping.attribute_indices = &build_id;
	}
	WRITE_ITEM(dictionary, mapping_table, &mapping);
	return *number = ++dictionary->mapping_count;
}

static int32_t write_location(struct otlp_dictionary *dictionary, const struct export_frame *frame)
{
	Otlp__Location location = OTLP__LOCATION__INIT;
	int32_t *number = number_slot(dictionary, &dictionary->locations, frame->number);

	if (!number || *number)
		return number ? *number : 0;
	Otlp__Line *lines = calloc(frame->line_count, sizeof(*lines));
	Otlp__Line **pointers = calloc(frame->line_count, sizeof(Otlp__Line *));
	dictionary->failed |= !lines || !pointers;
	for (size_t i = 0; lines && pointers && i < frame->line_count; i++) {
		otlp__line__init(&lines[i]);
		lines[i].function_index = write_function(dictionary, &frame->lines[i]);
		lines[i].line = frame->lines[i].line;
		pointers[i] = &lines[i];
		location.n_lines = i + 1;
	}
	location.lines = pointers;
	location.mapping_index = write_mapping(dictionary, frame->module);
	location.address = frame->address & ~STORE_NOWHERE;
	WRITE_ITEM(dictionary, location_table, &location);
	free(lines);
	free(pointers);
	return *number = ++dictionary->location_count;
}

int32_t otlp_dictionary_stack(struct otlp_dictionary *dictionary, const struct export_stack *stack)
{
	Otlp__Stack written = OTLP__STACK__INIT;
	int32_t *number = number_slot(dictionary, &dictionary->stacks, stack->number), *locations;

	if (!number || *number)
		return number ? *number : 0;
	locations = calloc(stack->count + 1, sizeof(*locations));
	dictionary->failed |= !locations;
	for (size_t i = 0; locations && i < stack->count; i++)
		locations[i] = write_location(dictionary, export_stack_frame(stack, i));
	written.n_location_indices = locations ? stack->count : 0;
	written.location_indices = locations;
	WRITE_ITEM(dictionary, stack_table, &written);
	free(locations);
	return *number = ++dictionary->stack_count;
}

void otlp_dictionary_begin(struct otlp_dictionary *dictionary)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT;
	Otlp__Location location = OTLP__LOCATION__INIT;
	Otlp__Function function = OTLP__FUNCTION__INIT;
	Otlp__Link link = OTLP__LINK__INIT;
	Otlp__Attribute attribute = OTLP__ATTRIBUTE__INIT;
	Otlp__Stack stack = OTLP__STACK__INIT;

	if (dictionary->bytes.count)
		return;
	otlp_dictionary_string(dictionary, "");
	WRITE_ITEM(dictionary, mapping_table, &mapping);
	WRITE_ITEM(dictionary, location_table, &location);
	WRITE_ITEM(dictionary, function_table, &function);
	WRITE_ITEM(dictionary, link_table, &link);
	WRITE_ITEM(dictionary, attribute_table, &attribute);
	WRITE_ITEM(dictionary, stack_table, &stack);
}

int32_t otlp_dictionary_link(struct otlp_dictionary *dictionary, const char *digits)
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
	int32_t number = number_of(dictionary, &dictionary->links, hash_bytes(ids, sizeof(ids)), &is_new);
	link.trace_id = (ProtobufCBinaryData){ 16, ids };
	link.span_id = (ProtobufCBinaryData){ 8, ids + 16 };
	if (is_new)
		WRITE_ITEM(dictionary, link_table, &link);
	return number;
}

void otlp_dictionary_free(struct otlp_dictionary *dictionary)
{
	vector_free(&dictionary->bytes);
	vector_free(&dictionary->locations.list);
	vector_free(&dictionary->mappings.list);
	vector_free(&dictionary->stacks.list);
	interner_free(&dictionary->strings);
	tally_free(&dictionary->functions);
	tally_free(&dictionary->attributes);
	tally_free(&dictionary->links);
}
