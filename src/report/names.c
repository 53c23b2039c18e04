/*
 * One table of frames by address and one of modules by their start; stacks are in a
 * list, to be freed. What is known of an address is what symbol/address.h says.
 */
#include "report/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/strings.h"
#include "sqlite/frames.h"
#include "symbol/address.h"

/* Things that are pointed to stay where they are; the list is for freeing them. */
struct list {
	void **items;
	uint32_t count, capacity;
};

struct entry {
	struct hash key;
	void *thing;
};

struct names {
	names_locator locate;
	struct strings strings;
	struct table frames_by_address, modules_by_start;
	struct list frames, modules, stacks;
};

struct names *names_create(names_locator locate)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->locate = locate;
	names->frames_by_address = names->modules_by_start =
		(struct table)TABLE_OF(struct entry, SIZE_MAX);
	return names;
}

static void free_list(struct list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

void names_free(struct names *names)
{
	if (!names)
		return;
	free_list(&names->frames);
	free_list(&names->modules);
	free_list(&names->stacks);
	table_free(&names->frames_by_address);
	table_free(&names->modules_by_start);
	strings_free(&names->strings);
	free(names);
}

const char *names_keep(struct names *names, const char *text)
{
	return strings_keep(&names->strings, text);
}

/* A zeroed thing of that size, in the list. */
static void *add_thing(struct list *list, size_t size)
{
	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity ? list->capacity * 2 : 64;
		void **grown = reallocarray(list->items, capacity, sizeof(*grown));
		if (!grown)
			return NULL;
		list->items = grown;
		list->capacity = capacity;
	}
	void *thing = calloc(1, size);
	if (thing)
		list->items[list->count++] = thing;
	return thing;
}

static bool remember(struct table *table, uint64_t key, void *thing)
{
	struct entry *entry = table_add(table, hash_words(&key, 1));

	if (entry)
		entry->thing = thing;
	return entry;
}

static void *recall(const struct table *table, uint64_t key)
{
	const struct entry *entry = table_find(table, hash_words(&key, 1));
	return entry ? entry->thing : NULL;
}

/* False: no memory. */
static bool find_module(struct names *names, uint64_t address, const struct report_module **found)
{
	struct report_module said;

	*found = NULL;
	if (!names->locate(address, &said))
		return true;
	*found = recall(&names->modules_by_start, said.start);
	if (*found)
		return true;
	struct report_module *module = add_thing(&names->modules, sizeof(*module));
	if (!module)
		return false;
	*module = said;
	module->number = names->modules.count - 1;
	module->path = names_keep(names, said.path);
	module->build_id = names_keep(names, said.build_id);
	if (!module->path || !module->build_id)
		return false;
	const char *slash = strrchr(module->path, '/');
	module->name = slash && slash[1] ? slash + 1 : module->path;
	*found = module;
	return remember(&names->modules_by_start, said.start, module);
}

/* The name, unless it says no more than where in the module the address is. */
static bool is_name(const char *symbol, const struct report_module *module, uint64_t address)
{
	char *offset;
	bool is = true;

	if (!symbol || !module)
		return false;
	if (asprintf(&offset, "%s+0x%" PRIx64, module->name, address - module->start) >= 0) {
		is = strcmp(symbol, offset) != 0;
		free(offset);
	}
	return is;
}

/* "file.c:12" to file and line; the module's path means that lines are not known. */
static bool keep_line(struct names *names, struct report_line *line, char *text,
                      const struct report_module *module)
{
	char *colon = text ? strrchr(text, ':') : NULL;

	line->file = "";
	if (!colon || !module || strcmp(text, module->path) == 0)
		return true;
	long number = strtol(colon + 1, NULL, 10);
	if (number <= 0 || number > INT32_MAX)
		return true;
	*colon = 0;
	line->line = (int)number;
	line->file = names_keep(names, text);
	return line->file;
}

static bool fill_line(struct names *names, struct report_line *line,
                      const struct report_module *module, uint64_t address)
{
	char *symbol = address_symbol(address), *function = address_text(address);
	char *place = address_line(address);
	bool filled = false;

	if (function) {
		line->function = names_keep(names, function);
		line->symbol = is_name(symbol, module, address) ? names_keep(names, symbol) : "";
		filled = line->function && line->symbol && keep_line(names, line, place, module);
	}
	free(symbol);
	free(function);
	free(place);
	return filled;
}

struct frame_with_line {
	struct report_frame frame;
	struct report_line line;
};

static const struct report_frame *find_frame(struct names *names, uint64_t address)
{
	struct frame_with_line *known = recall(&names->frames_by_address, address);

	if (known)
		return &known->frame;
	known = add_thing(&names->frames, sizeof(*known));
	if (!known)
		return NULL;
	known->frame = (struct report_frame){
		.number = names->frames.count - 1,
		.address = address,
		.line_count = 1,
		.lines = &known->line,
	};
	if (!find_module(names, address, &known->frame.module) ||
	    !fill_line(names, &known->line, known->frame.module, address) ||
	    !remember(&names->frames_by_address, address, known))
		return NULL;
	return &known->frame;
}

const struct report_stack *names_stack(struct names *names, const char *trace, bool is_truncated,
                                       bool *bad)
{
	struct frames addresses = { trace, false };
	uint64_t address;
	size_t count = 0;
	int next;

	while ((next = frames_next(&addresses, &address)) > 0)
		count++;
	*bad = next < 0;
	if (*bad)
		return NULL;
	struct report_stack *stack =
		add_thing(&names->stacks, sizeof(*stack) + count * sizeof(*stack->frames));
	if (!stack)
		return NULL;
	stack->number = names->stacks.count - 1;
	stack->is_truncated = is_truncated;
	stack->frames = (const struct report_frame **)(stack + 1);
	addresses = (struct frames){ trace, false };
	while (frames_next(&addresses, &address) > 0) {
		const struct report_frame *frame = find_frame(names, address);
		if (!frame)
			return NULL;
		stack->frames[stack->count++] = frame;
	}
	return stack;
}
