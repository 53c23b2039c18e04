/*
 * One table of frames by address and one of modules by their start; stacks are in a
 * list, to be freed. What is known of an address is what symbol/address.h says.
 */
#include "export/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/strings.h"
#include "trace/trace_text.h"
#include "modules/module_map.h"
#include "store/store.h"
#include "trace/address.h"
#include "symbol/symbol.h"

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
	const struct address_space *space;
	bool inlines;
	struct strings strings;
	struct hash_table frames_by_address, modules_by_start;
	struct list frames, modules, stacks;
};

struct names *names_create(const struct address_space *space, bool inlines)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->space = space;
	names->inlines = inlines;
	names->frames_by_address = names->modules_by_start =
		(struct hash_table)HASH_TABLE_OF(struct entry, SIZE_MAX);
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
	hash_table_free(&names->frames_by_address);
	hash_table_free(&names->modules_by_start);
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

static bool remember(struct hash_table *table, uint64_t key, void *thing)
{
	struct entry *entry = hash_table_add(table, hash_words(&key, 1));

	if (entry)
		entry->thing = thing;
	return entry;
}

static void *recall(const struct hash_table *table, uint64_t key)
{
	const struct entry *entry = hash_table_find(table, hash_words(&key, 1));
	return entry ? entry->thing : NULL;
}

/* False: no memory. */
static bool find_module(struct names *names, uint64_t address, const struct report_module **found)
{
	const struct module *said = names->space->locate(names->space, address);

	*found = NULL;
	if (!said)
		return true;
	*found = recall(&names->modules_by_start, said->start);
	if (*found)
		return true;
	struct report_module *module = add_thing(&names->modules, sizeof(*module));
	if (!module)
		return false;
	*module = (struct report_module){
		.number = names->modules.count - 1,
		.path = names_keep(names, said->path),
		.build_id = names_keep(names, said->build_id),
		.start = said->start,
		.end = said->end,
	};
	if (!module->path || !module->build_id)
		return false;
	const char *slash = strrchr(module->path, '/');
	module->name = slash && slash[1] ? slash + 1 : module->path;
	*found = module;
	return remember(&names->modules_by_start, said->start, module);
}

/* NULL: no memory. */
static const char *keep_offset(struct names *names, const struct report_module *module, uint64_t address)
{
	char *text;
	int size = module ? asprintf(&text, "%s+0x%" PRIx64, module->name, address - module->start)
	                  : asprintf(&text, "0x%" PRIx64, address & ~(uint64_t)STORE_NOWHERE);
	const char *kept = size < 0 ? NULL : names_keep(names, text);

	if (size >= 0)
		free(text);
	return kept;
}

/* False: no memory. */
static bool fill_line(struct names *names, struct report_line *line, const struct report_frame *frame,
                      const struct symbol_frame *known)
{
	char *source = known->function ? symbol_demangle(known->function) : NULL;

	line->function = source            ? names_keep(names, source)
	                 : known->function ? names_keep(names, known->function)
	                                   : keep_offset(names, frame->module, frame->address);
	line->symbol = names_keep(names, known->function ? known->function : "");
	line->file = names_keep(names, known->file ? known->file : "");
	line->line = known->line;
	free(source);
	return line->function && line->symbol && line->file;
}

struct frame_with_lines {
	struct report_frame frame;
	struct report_line lines[];
};

/* NULL: no memory. */
static struct frame_with_lines *make_frame(struct names *names, uint64_t address)
{
	struct symbol_frame known[SYMBOL_FRAMES_MAX] = { { .function = NULL } }, *first = known;
	size_t count = address_frames(names->space, address, known, SYMBOL_FRAMES_MAX);
	struct frame_with_lines *made;

	if (!count)
		count = 1; /* where it is */
	if (!names->inlines) {
		first += count - 1;
		count = 1;
	}
	made = add_thing(&names->frames, sizeof(*made) + count * sizeof(*made->lines));
	if (!made)
		return NULL;
	made->frame = (struct report_frame){
		.number = names->frames.count - 1,
		.address = address,
		.line_count = count,
		.lines = made->lines,
	};
	if (!find_module(names, address, &made->frame.module))
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (!fill_line(names, &made->lines[i], &made->frame, &first[i]))
			return NULL;
	return made;
}

static const struct report_frame *find_frame(struct names *names, uint64_t address)
{
	struct frame_with_lines *frame = recall(&names->frames_by_address, address);

	if (frame)
		return &frame->frame;
	frame = make_frame(names, address);
	return frame && remember(&names->frames_by_address, address, frame) ? &frame->frame : NULL;
}

const struct report_stack *names_stack(struct names *names, const char *trace, bool is_truncated, bool *bad)
{
	struct trace_reader addresses = { trace, false };
	uint64_t address;
	size_t count = 0;
	int next;

	while ((next = trace_next(&addresses, &address)) > 0)
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
	addresses = (struct trace_reader){ trace, false };
	while (trace_next(&addresses, &address) > 0) {
		const struct report_frame *frame = find_frame(names, address);
		if (!frame)
			return NULL;
		stack->frames[stack->count++] = frame;
	}
	return stack;
}
