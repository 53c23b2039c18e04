/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of names.h are unique, so a function is two pointers.
 */
#include "cmd/file/stack_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/tally.h"
#include "base/text.h"
#include "base/vector.h"
#include "cmd/file/frame_owner.h"
#include "export/export.h"
#include "export/names.h"
#include "frames/stack_text.h"
#include "store/file/made_table.h"
#include "wire/record.h"

#define NO_STACK "a trace is not an array of addresses" /* SQLITE_MISMATCH */

/* The numbers of plan_nodes.sql. */
enum { NO_PHASE = -1, PREPARING = -2, CLOSING = -3 };

/* A function at an address. */
struct known_line {
	const struct export_line *line;
	const char *module; /* its name, "" if there is none */
	int8_t phase;       /* of its name */
	int8_t owner;       /* 1: the program; 0: not known yet; -1: others */
};

/* A range of `lines` or of `frames`. */
struct part_of_vector {
	size_t first;
	uint32_t count;
	bool is_known;
};

#define RECENT_BITS 14 /* a cache of 256 kB */

/* An address and its row. */
struct recent {
	uint64_t address;
	uint32_t number;
	bool is_known;
};

/* A report looks at each stack several times, and stacks share their addresses. Each property of a line is
 * computed once. */
struct stack_frames {
	sqlite3 *db;
	sqlite3_stmt *traces_of; /* NULL: not prepared */
	struct names *names;
	struct index text_index;
	VECTOR(struct part_of_vector) texts;
	struct tally blocks;                  /* blocks of rows of stacks, by their first id: each is a row */
	VECTOR(struct part_of_vector) stacks; /* by number of the block and of the row in it */
	VECTOR(uint32_t) frames;              /* of the stacks: numbers of addresses */
	struct tally addresses;               /* each is a row */
	struct recent recent[1 << RECENT_BITS]; /* stacks that follow each other share most frames */
	VECTOR(struct part_of_vector) lines_of; /* an address, by number */
	VECTOR(struct known_line) lines;
};

static bool is_of_program(struct known_line *known)
{
	const struct export_line *line = known->line;

	/* Users look for names, not for numbers. */
	if (!known->owner)
		known->owner =
			line->symbol[0] && frame_is_of_program(line->function, known->module, line->file)
				? 1
				: -1;
	return known->owner > 0;
}

static int8_t phase_of(const char *name)
{
	if (strncmp(name, "sqlite3_", strlen("sqlite3_")) != 0)
		return NO_PHASE;
	if (strncmp(name, "sqlite3_prepare", strlen("sqlite3_prepare")) == 0)
		return PREPARING;
	return !strcmp(name, "sqlite3_reset") || !strcmp(name, "sqlite3_finalize") ||
	                       !strcmp(name, "sqlite3_close") || !strcmp(name, "sqlite3_close_v2")
	               ? CLOSING
	               : NO_PHASE;
}

/* False: no memory. */
static bool add_lines(struct stack_frames *frames, uint64_t address, struct part_of_vector *lines)
{
	const struct export_frame *frame = names_frame(frames->names, address);

	if (!frame)
		return false;
	lines->first = frames->lines.count;
	for (size_t i = 0; i < frame->line_count; i++)
		if (!vector_push(&frames->lines,
		                 (struct known_line){ .line = &frame->lines[i],
		                                      .module = frame->module ? frame->module->name : "",
		                                      .phase = phase_of(frame->lines[i].function) }))
			return false;
	lines->count = (uint32_t)frame->line_count;
	lines->is_known = true;
	return true;
}

/* The number of an address whose lines are known. UINT32_MAX: no memory. */
static uint32_t find_address(struct stack_frames *frames, uint64_t address)
{
	struct recent *recent = &frames->recent[address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RECENT_BITS)];

	if (recent->is_known && recent->address == address)
		return recent->number;
	const size_t number = tally_row(&frames->addresses, (const int64_t *)&address);
	struct part_of_vector *lines = number < UINT32_MAX ? vector_at(&frames->lines_of, number) : NULL;

	if (!lines || (!lines->is_known && !add_lines(frames, address, lines)))
		return UINT32_MAX;
	*recent = (struct recent){ address, (uint32_t)number, true };
	return recent->number;
}

/* An SQLite result: SQLITE_MISMATCH if the trace is not an array of addresses. */
static int read_stack(struct stack_frames *frames, const char *trace, struct part_of_vector *stack)
{
	struct address_reader reader = { .at = trace };
	const size_t first = frames->frames.count;
	uint64_t address;
	int next;

	stack->is_known = false;
	while ((next = address_reader_next(&reader, &address)) > 0) {
		if (frames->frames.count - first == STACK_FRAMES_MAX)
			return SQLITE_MISMATCH;
		const uint32_t number = find_address(frames, address);

		if (number == UINT32_MAX || !vector_push(&frames->frames, number))
			return SQLITE_NOMEM;
	}
	*stack = (struct part_of_vector){ first, (uint32_t)(frames->frames.count - first), next == 0 };
	return next < 0 ? SQLITE_MISMATCH : SQLITE_OK;
}

/* The stacks of rows are read and found in blocks. Adjacent rows are needed sooner or later, and a statement
 * for a block costs little more than one for a row. */
#define BLOCK 16

/* NULL: no memory. */
static struct part_of_vector *stacks_of_block(struct stack_frames *frames, int64_t id)
{
	const int64_t first = id & -BLOCK;
	const size_t number = tally_row(&frames->blocks, &first);
	const size_t end = (number + 1) * BLOCK;

	return number != TALLY_NONE && vector_at(&frames->stacks, end - 1)
	               ? &frames->stacks.items[end - BLOCK]
	               : NULL;
}

/* An SQLite result. A missing row has no frames. */
static int read_block(struct stack_frames *frames, int64_t id, struct part_of_vector *stacks)
{
	sqlite3_stmt *row = frames->traces_of;
	int code =
		row ? SQLITE_OK
		    : sqlite3_prepare_v2(frames->db, "SELECT id, trace FROM stacks WHERE id BETWEEN ? AND ?",
	                                 -1, &frames->traces_of, NULL);

	row = frames->traces_of;
	sqlite3_bind_int64(row, 1, id & -BLOCK);
	sqlite3_bind_int64(row, 2, id | (BLOCK - 1));
	for (size_t i = 0; i < BLOCK; i++)
		stacks[i] = (struct part_of_vector){ .is_known = true };
	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const char *trace = (const char *)sqlite3_column_text(row, 1);

		code = read_stack(frames, trace ? trace : "[]",
		                  &stacks[sqlite3_column_int64(row, 0) & (BLOCK - 1)]);
		code = code == SQLITE_MISMATCH ? SQLITE_OK : code; /* reported when it is asked for */
	}
	sqlite3_reset(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* An SQLite result, as below. */
static int find_of_row(struct stack_frames *frames, int64_t id, const struct part_of_vector **found)
{
	struct part_of_vector *stacks = stacks_of_block(frames, id);
	int code = SQLITE_OK;

	if (!stacks)
		return SQLITE_NOMEM;
	*found = &stacks[id & (BLOCK - 1)];
	if (!(*found)->is_known && !(code = read_block(frames, id, stacks)) && !(*found)->is_known)
		code = SQLITE_MISMATCH;
	return code;
}

/* The stack of a value (see stack_frames.h). An SQLite result, as below. */
static int find_stack(struct stack_frames *frames, sqlite3_value *value, const struct part_of_vector **found)
{
	if (sqlite3_value_type(value) == SQLITE_INTEGER)
		return find_of_row(frames, sqlite3_value_int64(value), found);
	const char *text = (const char *)sqlite3_value_text(value);
	const char *trace = text ? text : "[]";
	struct part_of_vector *stack =
		index_item(&frames->text_index, hash_bytes(trace, strlen(trace)), &frames->texts);

	*found = stack;
	return !stack ? SQLITE_NOMEM : stack->is_known ? SQLITE_OK : read_stack(frames, trace, stack);
}

/* Calls `take` for each function on the stack, leaf first, until it returns false. An SQLite result:
 * SQLITE_MISMATCH if the trace is not an array of addresses. Inline, because stacks have many functions. */
static inline int each_line(struct stack_frames *frames, sqlite3_value *value,
                            bool (*call)(void *context, struct known_line *line), void *context)
{
	const struct part_of_vector *stack;
	int code = find_stack(frames, value, &stack);

	for (size_t at = 0; !code && at < stack->count; at++) {
		const struct part_of_vector *lines =
			&frames->lines_of.items[frames->frames.items[stack->first + at]];

		for (size_t i = 0; !code && i < lines->count; i++)
			if (!call(context, &frames->lines.items[lines->first + i]))
				code = SQLITE_NOMEM;
	}
	return code;
}

/* --- the SQL functions ----------------------------------------------------------------------------- */

enum part { FUNCTIONS, MODULES, OWNERS };

struct stack_text {
	sqlite3_str *to;
	enum part part;
	bool has_all_locations, is_empty;
};

static const char *file_name(const struct export_line *line)
{
	const char *slash = strrchr(line->file, '/');

	return slash ? slash + 1 : line->file;
}

static bool has_location(struct known_line *known, bool has_all)
{
	return known->line->line > 0 && (has_all || is_of_program(known));
}

static bool add_part(void *context, struct known_line *known)
{
	struct stack_text *text = context;
	const struct export_line *line = known->line;
	const char *between = text->is_empty ? "" : "\n";

	text->is_empty = false;
	switch (text->part) {
	case FUNCTIONS:
		sqlite3_str_appendf(text->to,
		                    has_location(known, text->has_all_locations) ? "%s%s (%s:%d)" : "%s%s",
		                    between, line->function, file_name(line), line->line);
		break;
	case MODULES: sqlite3_str_appendf(text->to, "%s%s", between, known->module); break;
	case OWNERS: sqlite3_str_appendf(text->to, "%s%d", between, is_of_program(known));
	}
	return true;
}

static bool has_option(sqlite3_value **argv)
{
	return sqlite3_value_type(argv[1]) != SQLITE_NULL;
}

static void set_error(sqlite3_context *context, int code)
{
	if (code == SQLITE_MISMATCH)
		sqlite3_result_error(context, NO_STACK, -1);
	else
		sqlite3_result_error_code(context, code);
}

/* NULL for a stack without such frames. */
static void set_part(sqlite3_context *context, int argc, sqlite3_value **argv, enum part part)
{
	struct stack_text text = {
		.to = sqlite3_str_new(sqlite3_context_db_handle(context)),
		.part = part,
		.has_all_locations = argc > 1 && has_option(argv),
		.is_empty = true,
	};
	int code = each_line(sqlite3_user_data(context), argv[0], add_part, &text);

	if (!code)
		code = sqlite3_str_errcode(text.to);
	char *made = sqlite3_str_finish(text.to);
	if (code)
		set_error(context, code);
	else if (!text.is_empty)
		sqlite3_result_text(context, made ? made : "", -1, SQLITE_TRANSIENT);
	sqlite3_free(made);
}

struct stack_shape {
	bool has_all_locations, is_empty;
	struct hash hash;
};

/* Names are unique, so equal texts have equal pointers. */
static bool add_shape(void *context, struct known_line *known)
{
	struct stack_shape *shape = context;
	const struct export_line *line = known->line;

	shape->is_empty = false;
	hash_word(&shape->hash, (uintptr_t)line->function);
	if (has_location(known, shape->has_all_locations)) {
		hash_word(&shape->hash, hash_bytes(file_name(line), strlen(file_name(line))).first);
		hash_word(&shape->hash, (uint64_t)line->line);
	}
	return true;
}

static void stack_shape(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct stack_shape shape = { has_option(argv), true, hash_begin(0) };
	int code = each_line(sqlite3_user_data(context), argv[0], add_shape, &shape);

	(void)argc;
	if (code)
		set_error(context, code);
	else if (!shape.is_empty)
		sqlite3_result_int64(context, (int64_t)hash_end(shape.hash).first);
}

/* The nearest frame of the program. If SQLite's function of the same module called it, it is SQLite's. */
static bool find_caller(void *context, struct known_line *known)
{
	struct known_line **caller = context;

	if (*caller) {
		if (strncmp(known->line->function, "sqlite3_", 8) == 0 &&
		    strcmp(known->module, (*caller)->module) == 0)
			*caller = NULL;
	} else if (is_of_program(known)) {
		*caller = known;
	}
	return true;
}

static bool find_leaf(void *context, struct known_line *known)
{
	struct known_line **leaf = context;

	if (!*leaf && strncmp(known->module, "libqueryprof", 12) != 0)
		*leaf = known;
	return true;
}

/* The program's function nearest to the leaf; has_leaf: if there is none, the one nearest to the leaf. The
 * source line is shown only for a function of the program. */
static void show_place(sqlite3_context *context, sqlite3_value *stack, bool has_leaf)
{
	struct known_line *place = NULL;
	int code = each_line(sqlite3_user_data(context), stack, find_caller, &place);

	if (!code && !place && has_leaf)
		code = each_line(sqlite3_user_data(context), stack, find_leaf, &place);
	if (code) {
		set_error(context, code);
	} else if (place) {
		const struct export_line *line = place->line;
		const bool has_line = line->line > 0 && is_of_program(place);
		char *text = sqlite3_mprintf(has_line ? "%s\n%s:%d" : "%s\n", line->function, file_name(line),
		                             line->line);

		sqlite3_result_text(context, text, -1, sqlite3_free);
	}
}

static void stack_caller(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc;
	show_place(context, argv[0], false);
}

static void stack_place(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc;
	show_place(context, argv[0], true);
}

static bool add_phase(void *context, struct known_line *known)
{
	int *phase = context;

	if (known->phase == PREPARING || (known->phase == CLOSING && *phase == NO_PHASE))
		*phase = known->phase;
	return true;
}

static void stack_phase(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int phase = NO_PHASE;
	int code = each_line(sqlite3_user_data(context), argv[0], add_phase, &phase);

	(void)argc;
	if (code)
		set_error(context, code);
	else
		sqlite3_result_int(context, phase);
}

#define STACK_FUNCTION(name, part)                                                                           \
	static void name(sqlite3_context *context, int argc, sqlite3_value **argv)                           \
	{                                                                                                    \
		set_part(context, argc, argv, part);                                                         \
	}
STACK_FUNCTION(stack_functions, FUNCTIONS)
STACK_FUNCTION(stack_modules, MODULES)
STACK_FUNCTION(stack_owners, OWNERS)

/* --- the table ------------------------------------------------------------------------------------- */

enum column { NAME, MODULE, LIBRARY, SELF, SELF_SAMPLES, SELF_SQUARE, TOTAL, TOTAL_SAMPLES, TOTAL_SQUARE };

static const char columns[] =
	"name TEXT, module TEXT, library TEXT, self REAL, self_samples INTEGER, self_square REAL, "
	"total REAL, total_samples INTEGER, total_square REAL";

/* The words of a row. The key is two pointers. */
enum {
	ROW_NAME,
	ROW_MODULE,
	ROW_STACK, /* the last stack that had it */
	ROW_SELF,
	ROW_SELF_SAMPLES,
	ROW_SELF_SQUARE,
	ROW_TOTAL,
	ROW_TOTAL_SAMPLES,
	ROW_TOTAL_SQUARE,
	ROW_WORDS
};

struct rows {
	struct tally functions;
	VECTOR(uint32_t) of_lines; /* the row of a line, from 1; 0: not known yet */
	/* The stack that is being added. */
	struct stack_frames *frames;
	int64_t number, samples;
	double value, square;
	bool is_leaf, is_by_library;
};

static void free_rows(void *given)
{
	struct rows *rows = given;

	tally_free(&rows->functions);
	vector_free(&rows->of_lines);
}

static size_t count_rows(const void *given)
{
	return ((const struct rows *)given)->functions.count;
}

/* NULL: no memory. */
static const char *keep_library(struct names *names, const char *module)
{
	const char *version = strstr(module, ".so.");
	char *text = version ? strndup(module, (size_t)(version - module) + 3) : NULL;
	const char *kept = version ? text ? names_keep(names, text) : NULL : module;

	free(text);
	return kept;
}

/* NULL: no memory. */
static const char *keep_module_as_name(struct names *names, const char *module)
{
	char *text = text_format(module[0] ? "(%s)" : "(no module)", module);
	const char *kept = text ? names_keep(names, text) : NULL;

	free(text);
	return kept;
}

/* The row of a function, from 1. 0: no memory. */
static uint32_t find_row(struct rows *rows, const struct known_line *known)
{
	struct names *names = rows->frames->names;
	const char *module = rows->is_by_library ? keep_library(names, known->module) : known->module;
	const char *name = !module                  ? NULL
	                   : known->line->symbol[0] ? known->line->function
	                                            : keep_module_as_name(names, module);
	const int64_t key[] = { (int64_t)(intptr_t)name, (int64_t)(intptr_t)module };
	const size_t row = name ? tally_row(&rows->functions, key) : TALLY_NONE;

	return row == TALLY_NONE ? 0 : (uint32_t)row + 1;
}

static bool add_line(void *context, struct known_line *known)
{
	struct rows *rows = context;
	const bool is_leaf = rows->is_leaf;
	uint32_t *row = vector_at(&rows->of_lines, (size_t)(known - rows->frames->lines.items));

	rows->is_leaf = false;
	if (!row || (!*row && !(*row = find_row(rows, known))))
		return false;
	int64_t *words = tally_at(&rows->functions, *row - 1);
	if (words[ROW_STACK] == rows->number)
		return true;
	words[ROW_STACK] = rows->number;
	for (int part = is_leaf ? ROW_SELF : ROW_TOTAL; part <= ROW_TOTAL; part += ROW_TOTAL - ROW_SELF) {
		tally_add(&words[part], rows->value);
		words[part + 1] += rows->samples;
		tally_add(&words[part + 2], rows->square);
	}
	return true;
}

static int make_rows(sqlite3 *db, void *frames, void *memory, void *made, uint64_t used, char **error)
{
	static const char sql[] = "SELECT samples, value, square, stack_id FROM temp.report_stacks";
	struct rows *rows = made;
	sqlite3_stmt *stack = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &stack, NULL);

	(void)memory;
	*rows = (struct rows){
		.functions = { .keys = ROW_STACK, .width = ROW_WORDS },
		.frames = frames,
		.is_by_library = used >> LIBRARY & 1,
	};
	while (!code && (code = sqlite3_step(stack)) == SQLITE_ROW) {
		rows->number++;
		rows->samples = sqlite3_column_int64(stack, 0);
		rows->value = sqlite3_column_double(stack, 1);
		rows->square = sqlite3_column_double(stack, 2);
		rows->is_leaf = true;
		code = each_line(rows->frames, sqlite3_column_value(stack, 3), add_line, rows);
	}
	sqlite3_finalize(stack);
	if (code == SQLITE_MISMATCH)
		*error = sqlite3_mprintf("%s", NO_STACK);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void read_value(const void *memory, const void *made, size_t row, int column, sqlite3_context *result)
{
	const struct rows *rows = made;
	const int64_t *words = tally_at(&rows->functions, row);

	(void)memory;
	switch ((enum column)column) {
	case NAME:
		sqlite3_result_text(result, (const char *)(intptr_t)words[ROW_NAME], -1, SQLITE_STATIC);
		break;
	case MODULE:
	case LIBRARY:
		sqlite3_result_text(result, (const char *)(intptr_t)words[ROW_MODULE], -1, SQLITE_STATIC);
		break;
	case SELF_SAMPLES:
	case TOTAL_SAMPLES: sqlite3_result_int64(result, words[column - SELF + ROW_SELF]); break;
	default: sqlite3_result_double(result, tally_number(words[column - SELF + ROW_SELF]));
	}
}

static void free_frames(void *data)
{
	struct stack_frames *frames = data;

	names_free(frames->names);
	index_free(&frames->text_index);
	vector_free(&frames->texts);
	tally_free(&frames->blocks);
	vector_free(&frames->stacks);
	vector_free(&frames->frames);
	tally_free(&frames->addresses);
	vector_free(&frames->lines_of);
	vector_free(&frames->lines);
	free(frames);
}

static const struct {
	const char *name;
	int arguments;
	void (*call)(sqlite3_context *context, int argc, sqlite3_value **argv);
} functions[] = {
	{ "stackFunctions", 2, stack_functions }, { "stackModules", 1, stack_modules },
	{ "stackOwners", 1, stack_owners },       { "stackCaller", 1, stack_caller },
	{ "stackPlace", 1, stack_place },         { "stackShape", 2, stack_shape },
	{ "stackPhase", 1, stack_phase },
};

void stack_frames_end(struct stack_frames *frames)
{
	if (!frames)
		return;
	sqlite3_finalize(frames->traces_of);
	frames->traces_of = NULL;
}

int stack_frames_add(sqlite3 *db, const struct address_space *space, struct stack_frames **added)
{
	static const struct made_table report_functions = {
		.name = "report_functions",
		.needs_create = true,
		.columns = columns,
		.rows_size = sizeof(struct rows),
		.make = make_rows,
		.count = count_rows,
		.read = read_value,
		.free_rows = free_rows,
	};
	struct stack_frames *frames = calloc(1, sizeof(*frames));
	struct names *names = frames ? names_create(true) : NULL;
	int code = SQLITE_OK;

	if (!names) {
		free(frames);
		return SQLITE_NOMEM;
	}
	frames->db = db;
	frames->names = names;
	frames->blocks = (struct tally){ .keys = 1, .width = 1 };
	frames->addresses = (struct tally){ .keys = 1, .width = 1 };
	names_enter(names, space);
	/* If this fails, it has already called the first one's destructor. */
	for (size_t i = 0; !code && i < sizeof(functions) / sizeof(functions[0]); i++)
		code = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments,
		                                  SQLITE_UTF8 | SQLITE_DIRECTONLY, frames, functions[i].call,
		                                  NULL, NULL, i ? NULL : free_frames);
	*added = code ? NULL : frames;
	return code ? code : made_table_add(db, &report_functions, frames);
}
