/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames by address and modules by their start, each created once. frames/address.h looks up the addresses.
 */
#include "export/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/interner.h"
#include "base/text.h"
#include "base/vector.h"
#include "modules/module_map.h"
#include "store/store.h"
#include "symbol/symbol.h"
#include "frames/address.h"
#include "frames/stack_text.h"
#include "wire/record.h"

struct frame_with_lines {
	struct export_frame frame;
	struct export_line lines[];
};

#define NOT_USED UINT32_MAX
#define RECENT 1024

/* Writers keep pointers to frames, modules and stacks, so each is a separate allocation. */
struct names {
	const struct address_space *space;
	uint64_t space_number;
	bool inlines;
	struct interner texts;
	struct index frame_index, module_index; /* by space and address */
	VECTOR(struct frame_with_lines *) frames;
	VECTOR(struct export_module *) modules;
	VECTOR(struct export_stack *) stacks;
	VECTOR(const struct export_frame *) read; /* of the current stack */
	/* By address, because consecutive stacks share most frames. */
	struct {
		uint64_t space_number, address;
		const struct export_frame *frame;
	} recent[RECENT];
	uint32_t stacks_used, frames_used, modules_used; /* the numbers that were assigned */
};

struct names *names_create(bool inlines)
{
	struct names *names = calloc(1, sizeof(*names));

	if (names)
		names->inlines = inlines;
	return names;
}

void names_enter(struct names *names, const struct address_space *space)
{
	names->space = space;
	names->space_number++;
}

static struct hash key_at(const struct names *names, uint64_t address)
{
	uint64_t words[] = { names->space_number, address };
	return hash_words(words, 2);
}

#define FREE_ALL(vector)                                                                                     \
	do {                                                                                                 \
		for (size_t i = 0; i < (vector)->count; i++)                                                 \
			free((vector)->items[i]);                                                            \
		vector_free(vector);                                                                         \
	} while (0)

void names_free(struct names *names)
{
	if (!names)
		return;
	FREE_ALL(&names->frames);
	FREE_ALL(&names->modules);
	FREE_ALL(&names->stacks);
	vector_free(&names->read);
	index_free(&names->frame_index);
	index_free(&names->module_index);
	interner_free(&names->texts);
	free(names);
}

const char *names_keep(struct names *names, const char *text)
{
	char *repaired = text_repair(text, strlen(text));
	const char *kept = repaired ? interner_keep(&names->texts, repaired, strlen(repaired)) : NULL;

	free(repaired);
	return kept;
}

/* False: no memory. */
static bool find_module(struct names *names, uint64_t address, const struct export_module **found)
{
	const struct module *said = names->space->locate(names->space, address);

	*found = NULL;
	if (!said)
		return true;
	struct export_module **module =
		index_item(&names->module_index, key_at(names, said->start), &names->modules);
	if (!module)
		return false;
	if (!*module) {
		const char *path = names_keep(names, said->path);
		const char *build_id = names_keep(names, said->build_id);
		if (!path || !build_id || !(*module = malloc(sizeof(**module))))
			return false;
		const char *slash = strrchr(path, '/');
		**module = (struct export_module){
			.name = slash && slash[1] ? slash + 1 : path,
			.path = path,
			.build_id = build_id,
			.start = said->start,
			.end = said->end,
			.number = NOT_USED,
		};
	}
	*found = *module;
	return true;
}

/* NULL: no memory. */
static const char *keep_offset(struct names *names, const struct export_module *module, uint64_t address)
{
	char *text = module ? text_format("%s+0x%" PRIx64, module->name, address - module->start)
	                    : text_format("0x%" PRIx64, address & ~(uint64_t)STORE_NOWHERE);
	const char *kept = text ? names_keep(names, text) : NULL;

	free(text);
	return kept;
}

/* False: no memory. */
static bool fill_line(struct names *names, struct export_line *line, const struct export_frame *frame,
                      const struct symbol_frame *known)
{
	char *source = known->function ? symbol_demangle_distinct(known->function) : NULL;

	line->function = source            ? names_keep(names, source)
	                 : known->function ? names_keep(names, known->function)
	                                   : keep_offset(names, frame->module, frame->address);
	line->symbol = names_keep(names, known->function ? known->function : "");
	line->file = names_keep(names, known->file ? known->file : "");
	line->line = known->line;
	free(source);
	return line->function && line->symbol && line->file;
}

/* NULL: no memory. */
static struct frame_with_lines *make_frame(struct names *names, uint64_t address)
{
	struct symbol_frame known[SYMBOL_FRAMES_MAX] = { { .function = NULL } }, *first = known;
	size_t count = address_frames(names->space, address, known, SYMBOL_FRAMES_MAX);
	struct frame_with_lines *made;

	if (!count)
		count = 1; /* the place itself */
	if (!names->inlines) {
		first += count - 1;
		count = 1;
	}
	made = calloc(1, sizeof(*made) + count * sizeof(*made->lines));
	if (!made)
		return NULL;
	made->frame.address = address;
	made->frame.line_count = count;
	made->frame.lines = made->lines;
	bool is_whole = find_module(names, address, &made->frame.module);
	for (size_t i = 0; is_whole && i < count; i++)
		is_whole = fill_line(names, &made->lines[i], &made->frame, &first[i]);
	if (is_whole)
		return made;
	free(made);
	return NULL;
}

const struct export_frame *names_frame(struct names *names, uint64_t address)
{
	__typeof__(names->recent[0]) *recent = &names->recent[(address ^ address >> 10) % RECENT];

	if (recent->frame && recent->address == address && recent->space_number == names->space_number)
		return recent->frame;
	struct frame_with_lines **frame =
		index_item(&names->frame_index, key_at(names, address), &names->frames);

	if (frame && !*frame && (*frame = make_frame(names, address)))
		(*frame)->frame.number = NOT_USED;
	if (!frame || !*frame)
		return NULL;
	recent->space_number = names->space_number;
	recent->address = address;
	recent->frame = &(*frame)->frame;
	return recent->frame;
}

/* With room for so many frames. NULL: no memory. */
static struct export_stack *make_stack(struct names *names, size_t frames)
{
	struct export_stack *made = calloc(1, sizeof(*made) + frames * sizeof(*made->frames));

	if (!made || !vector_push(&names->stacks, made)) {
		free(made);
		return NULL;
	}
	made->number = NOT_USED;
	made->frames = (const struct export_frame **)(made + 1);
	made->count = frames;
	return made;
}

const struct export_stack *names_stack(struct names *names, const char *json, bool is_truncated, bool *bad)
{
	struct address_reader addresses = { .at = json };
	uint64_t address;
	int next;

	*bad = false;
	names->read.count = 0;
	while (!*bad && (next = address_reader_next(&addresses, &address)) != 0) {
		const struct export_frame *frame = next > 0 ? names_frame(names, address) : NULL;

		*bad = next < 0 || names->read.count == STACK_FRAMES_MAX;
		if (*bad || !frame || !vector_push(&names->read, frame))
			return NULL;
	}
	const size_t count = names->read.count;
	struct export_stack *stack = make_stack(names, count);
	if (!stack)
		return NULL;
	stack->is_truncated = is_truncated;
	if (count)
		memcpy(stack->frames, names->read.items, count * sizeof(*stack->frames));
	return stack;
}

/* The frame for a function's name; NULL: no memory. */
static const struct export_frame *find_made(struct names *names, const char *function)
{
	struct frame_with_lines **frame =
		index_item(&names->frame_index, hash_bytes(function, strlen(function)), &names->frames);

	if (frame && !*frame && (*frame = calloc(1, sizeof(**frame) + sizeof(*(*frame)->lines)))) {
		(*frame)->frame = (struct export_frame){ .number = NOT_USED,
			                                 .line_count = 1,
			                                 .lines = (*frame)->lines };
		(*frame)->lines[0] = (struct export_line){ .function = function, .symbol = "", .file = "" };
	}
	return frame && *frame ? &(*frame)->frame : NULL;
}

const struct export_stack *names_replace(struct names *names, const struct export_stack *stack, size_t at,
                                         size_t end, const char *const *functions, size_t count)
{
	struct export_stack *made = make_stack(names, stack->count - (end - at) + count);

	if (!made)
		return NULL;
	made->is_truncated = stack->is_truncated;
	for (size_t i = 0; i < at; i++)
		made->frames[i] = export_stack_frame(stack, i);
	for (size_t i = 0; i < count; i++)
		if (!(made->frames[at + i] = find_made(names, functions[i])))
			return NULL;
	for (size_t i = end; i < stack->count; i++)
		made->frames[i - end + at + count] = export_stack_frame(stack, i);
	return made;
}

const struct export_stack *names_lead(struct names *names, const struct export_stack *stack, const char *wait)
{
	const struct export_frame *leaf = find_made(names, wait);
	struct export_stack *made = leaf ? make_stack(names, 0) : NULL;

	if (!made)
		return NULL;
	made->is_truncated = stack->is_truncated;
	made->count = 1 + stack->count;
	made->frames = NULL;
	made->leaf = leaf;
	made->rest = stack;
	return made;
}

static void number_frames(struct names *names, struct export_stack *stack)
{
	if (stack->has_numbers)
		return;
	stack->has_numbers = true;
	for (size_t i = 0; i < (stack->rest ? 1 : stack->count); i++) {
		struct export_frame *frame = (struct export_frame *)export_stack_frame(stack, i);
		struct export_module *module = (struct export_module *)frame->module;

		if (frame->number == NOT_USED)
			frame->number = names->frames_used++;
		if (module && module->number == NOT_USED)
			module->number = names->modules_used++;
	}
	if (stack->rest)
		number_frames(names, (struct export_stack *)stack->rest);
}

void names_use(struct names *names, const struct export_stack *stack)
{
	if (stack->number != NOT_USED)
		return;
	((struct export_stack *)stack)->number = names->stacks_used++;
	number_frames(names, (struct export_stack *)stack);
}

static bool is_function(const struct export_frame *frame, const char *symbol)
{
	for (size_t i = 0; i < frame->line_count; i++)
		if (!strcmp(frame->lines[i].symbol, symbol))
			return true;
	return false;
}

size_t names_find_interpreter(const struct export_stack *stack)
{
	size_t found = SIZE_MAX;

	/* A statement may run SQLite's internal ones, nearer to the leaf, with no frame of the library
	 * between. */
	for (size_t i = 0; i < stack->count; i++) {
		const struct export_frame *frame = stack->frames[i];
		const struct export_module *module = frame->module;

		if (found != SIZE_MAX && module && !strncmp(module->name, "libqueryprof", 12))
			break;
		/* If the interpreter has no name, its caller does. */
		if (is_function(frame, "sqlite3VdbeExec"))
			found = i + 1;
		else if (found != i && i > 0 && is_function(frame, "sqlite3_step"))
			found = i;
	}
	return found;
}
