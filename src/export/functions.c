/*
 * A hash table of numbers over an array of functions. See the header.
 */
#include "export/functions.h"

#include <stdlib.h>
#include <string.h>

struct entry {
	struct hash key;
	uint32_t number;
};

uint32_t functions_add(struct functions *functions, const struct report_frame *frame, size_t line)
{
	const struct report_line *at = &frame->lines[line];
	/* Equal texts of frames are one text, see names.h. */
	uint64_t words[] = { (uintptr_t)at->function, (uintptr_t)at->file, (uintptr_t)frame->module };
	struct hash key = hash_words(words, 3);

	functions->table.entry_size = sizeof(struct entry);
	functions->table.limit = SIZE_MAX;
	struct entry *entry = hash_table_find(&functions->table, key);
	if (entry)
		return entry->number;
	if (functions->count == functions->capacity) {
		uint32_t capacity = functions->capacity ? functions->capacity * 2 : 64;
		struct report_function *grown = reallocarray(functions->list, capacity, sizeof(*grown));
		if (!grown)
			return FUNCTIONS_NO_MEMORY;
		functions->list = grown;
		functions->capacity = capacity;
	}
	entry = hash_table_add(&functions->table, key);
	if (!entry)
		return FUNCTIONS_NO_MEMORY;
	entry->number = functions->count;
	functions->list[functions->count] = (struct report_function){
		.name = at->function,
		.file = at->file,
		.module = frame->module,
	};
	return functions->count++;
}

void functions_free(struct functions *functions)
{
	free(functions->list);
	hash_table_free(&functions->table);
	*functions = (struct functions){ 0 };
}
