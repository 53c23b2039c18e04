/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of names.h are kept once, so a function is two pointers.
 */
#include "cmd/file/stack_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
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

/* Lines are made once, and are of many stacks. */
struct owned_line {
	struct hash line;
	bool is_of_program;
};

/* The frames of a trace: some of `frames`. */
struct known_stack {
	size_t first;
	uint32_t count;
	bool is_known;
};

/* A report looks at each stack several times. */
struct frame_names {
	struct names *names;
	struct hash_table owned;
	struct index stack_index; /* by text */
	VECTOR(struct known_stack) stacks;
	VECTOR(const struct export_frame *) frames;
};

/* `module`: its name, "" where there is none. */
static bool is_of_program(struct frame_names *frames, const struct export_line *line, const char *module)
{
	struct hash key = hash_begin(0);

	hash_word(&key, (uintptr_t)line);
	key = hash_end(key);
	const struct owned_line *known = hash_table_find(&frames->owned, key);
	if (known)
		return known->is_of_program;
	/* A number in the place of a name is no function that anybody looks for. */
	bool is = line->symbol[0] && frame_is_of_program(line->function, module, line->file);
	struct owned_line *added = hash_table_add(&frames->owned, key);
	if (added)
		added->is_of_program = is;
	return is;
}

/* An SQLite result: SQLITE_MISMATCH if the trace is no array of addresses. */
static int read_stack(struct frame_names *frames, const char *trace, struct known_stack *stack)
{
	struct address_reader reader = { .at = trace };
	const size_t first = frames->frames.count;
	uint64_t address;
	int next;

	while ((next = address_reader_next(&reader, &address)) > 0) {
		const struct export_frame *frame = names_frame(frames->names, address);

		if (frames->frames.count - first == STACK_FRAMES_MAX)
			return SQLITE_MISMATCH;
		if (!frame || !vector_push(&frames->frames, frame))
			return SQLITE_NOMEM;
	}
	*stack = (struct known_stack){ first, (uint32_t)(frames->frames.count - first), next == 0 };
	return next < 0 ? SQLITE_MISMATCH : SQLITE_OK;
}

/* Calls for each function on the stack, leaf first, until a call returns false. An SQLite result:
 * SQLITE_MISMATCH if the trace is no array of addresses. */
static int each_line(struct frame_names *frames, const char *trace,
                     bool (*call)(void *context, const struct export_line *line, const char *module),
                     void *context)
{
	struct known_stack *stack =
		index_item(&frames->stack_index, hash_bytes(trace, strlen(trace)), &frames->stacks);
	int code = !stack ? SQLITE_NOMEM : stack->is_known ? SQLITE_OK : read_stack(frames, trace, stack);

	for (size_t at = 0; !code && at < stack->count; at++) {
		const struct export_frame *frame = frames->frames.items[stack->first + at];

		for (size_t i = 0; !code && i < frame->line_count; i++)
			if (!call(context, &frame->lines[i], frame->module ? frame->module->name : ""))
				code = SQLITE_NOMEM;
	}
	return code;
}

/* --- the SQL functions ----------------------------------------------------------------------------- */

/* The numbers of plan_nodes.sql. */
enum { NO_PHASE = -1, PREPARING = -2, CLOSING = -3 };

enum part { FUNCTIONS, MODULES, OWNERS, CALLER, SHAPE };

struct stack_text {
	struct frame_names *frames;
	sqlite3_str *to;
	enum part part;
	bool has_all_locations, is_empty;
	struct hash shape;
	const struct export_line *caller; /* NULL: none so far */
	const char *caller_module;
};

static const char *file_name(const struct export_line *line)
{
	const char *slash = strrchr(line->file, '/');

	return slash ? slash + 1 : line->file;
}

/* The nearest frame of the program. One that SQLite's function of the same module called is SQLite's. */
static void find_caller(struct stack_text *text, const struct export_line *line, const char *module)
{
	if (text->caller) {
		if (strncmp(line->function, "sqlite3_", 8) == 0 && strcmp(module, text->caller_module) == 0)
			text->caller = NULL;
	} else if (is_of_program(text->frames, line, module)) {
		text->caller = line;
		text->caller_module = module;
	}
}

static bool add_part(void *context, const struct export_line *line, const char *module)
{
	struct stack_text *text = context;

	if (text->part == CALLER) {
		find_caller(text, line, module);
		return true;
	}
	const bool is_own = (text->part == OWNERS ||
	                     (text->part != MODULES && line->line > 0 && !text->has_all_locations)) &&
	                    is_of_program(text->frames, line, module);
	const bool has_location = line->line > 0 && (is_own || text->has_all_locations);
	const char *between = text->is_empty ? "" : "\n";

	text->is_empty = false;
	switch (text->part) {
	case FUNCTIONS:
		sqlite3_str_appendf(text->to, has_location ? "%s%s (%s:%d)" : "%s%s", between, line->function,
		                    file_name(line), line->line);
		break;
	case MODULES: sqlite3_str_appendf(text->to, "%s%s", between, module); break;
	case OWNERS: sqlite3_str_appendf(text->to, "%s%d", between, is_own); break;
	case CALLER: break;
	case SHAPE: /* names are kept once, so equal texts have equal pointers */
		hash_word(&text->shape, (uintptr_t)line->function);
		if (has_location) {
			hash_word(&text->shape, hash_bytes(file_name(line), strlen(file_name(line))).first);
			hash_word(&text->shape, (uint64_t)line->line);
		}
	}
	return true;
}

/* NULL for a stack without such frames. */
static void set_part(sqlite3_context *context, int argc, sqlite3_value **argv, enum part part)
{
	const char *trace = (const char *)sqlite3_value_text(argv[0]);
	struct stack_text text = {
		.frames = sqlite3_user_data(context),
		.to = sqlite3_str_new(sqlite3_context_db_handle(context)),
		.part = part,
		.has_all_locations = argc > 1 && sqlite3_value_type(argv[1]) != SQLITE_NULL,
		.is_empty = true,
		.shape = hash_begin(0),
	};
	int code = each_line(text.frames, trace ? trace : "[]", add_part, &text);

	if (text.caller)
		sqlite3_str_appendf(text.to, text.caller->line > 0 ? "%s\n%s:%d" : "%s\n",
		                    text.caller->function, file_name(text.caller), text.caller->line);
	if (!code)
		code = sqlite3_str_errcode(text.to);
	char *made = sqlite3_str_finish(text.to);
	if (code == SQLITE_MISMATCH)
		sqlite3_result_error(context, NO_STACK, -1);
	else if (code)
		sqlite3_result_error_code(context, code);
	else if (part == SHAPE && !text.is_empty)
		sqlite3_result_int64(context, (int64_t)hash_end(text.shape).first);
	else if (text.caller || !text.is_empty)
		sqlite3_result_text(context, made ? made : "", -1, SQLITE_TRANSIENT);
	sqlite3_free(made);
}

static bool add_phase(void *context, const struct export_line *line, const char *module)
{
	int *phase = context;
	const char *name = line->function;

	(void)module;
	if (strncmp(name, "sqlite3_", strlen("sqlite3_")) != 0)
		return true;
	if (strncmp(name, "sqlite3_prepare", strlen("sqlite3_prepare")) == 0)
		*phase = PREPARING;
	else if (*phase == NO_PHASE && (!strcmp(name, "sqlite3_reset") || !strcmp(name, "sqlite3_finalize") ||
	                                !strcmp(name, "sqlite3_close") || !strcmp(name, "sqlite3_close_v2")))
		*phase = CLOSING;
	return true;
}

static void stack_phase(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct frame_names *frames = sqlite3_user_data(context);
	const char *trace = (const char *)sqlite3_value_text(argv[0]);
	int phase = NO_PHASE, code = each_line(frames, trace ? trace : "[]", add_phase, &phase);

	(void)argc;
	if (code == SQLITE_MISMATCH)
		sqlite3_result_error(context, NO_STACK, -1);
	else if (code)
		sqlite3_result_error_code(context, code);
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
STACK_FUNCTION(stack_caller, CALLER)
STACK_FUNCTION(stack_shape, SHAPE)

/* --- the table ------------------------------------------------------------------------------------- */

enum column { NAME, MODULE, LIBRARY, SELF, SELF_SAMPLES, SELF_SQUARE, TOTAL, TOTAL_SAMPLES, TOTAL_SQUARE };

static const char columns[] =
	"name TEXT, module TEXT, library TEXT, self REAL, self_samples INTEGER, self_square REAL, "
	"total REAL, total_samples INTEGER, total_square REAL";

/* The words of a row. The key is two pointers. */
enum {
	ROW_NAME,
	ROW_MODULE,
	ROW_STACK, /* the last one that had it */
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
	/* The stack that is added up. */
	struct frame_names *frames;
	int64_t number, samples;
	double value, square;
	bool is_leaf, is_by_library;
};

static void free_rows(void *given)
{
	struct rows *rows = given;

	tally_free(&rows->functions);
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

static bool add_line(void *context, const struct export_line *line, const char *module)
{
	struct rows *rows = context;
	const bool is_leaf = rows->is_leaf;

	rows->is_leaf = false;
	if (rows->is_by_library && !(module = keep_library(rows->frames->names, module)))
		return false;
	const char *name =
		line->symbol[0] ? line->function : keep_module_as_name(rows->frames->names, module);
	const int64_t key[] = { (int64_t)(intptr_t)name, (int64_t)(intptr_t)module };
	const size_t function = name ? tally_row(&rows->functions, key) : TALLY_NONE;
	if (function == TALLY_NONE)
		return false;
	int64_t *words = tally_at(&rows->functions, function);
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
	static const char sql[] =
		"SELECT samples, value, square, coalesce(trace, '[]') FROM temp.report_stacks"
		" LEFT JOIN stacks ON stacks.id = stack_id";
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
		code = each_line(rows->frames, (const char *)sqlite3_column_text(stack, 3), add_line, rows);
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
	struct frame_names *frames = data;

	names_free(frames->names);
	hash_table_free(&frames->owned);
	index_free(&frames->stack_index);
	vector_free(&frames->stacks);
	vector_free(&frames->frames);
	free(frames);
}

static const struct {
	const char *name;
	int arguments;
	void (*call)(sqlite3_context *context, int argc, sqlite3_value **argv);
} functions[] = {
	{ "stackFunctions", 2, stack_functions }, { "stackModules", 1, stack_modules },
	{ "stackOwners", 1, stack_owners },       { "stackCaller", 1, stack_caller },
	{ "stackShape", 2, stack_shape },         { "stackPhase", 1, stack_phase },
};

int stack_frames_add(sqlite3 *db, const struct address_space *space)
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
	struct frame_names *frames = calloc(1, sizeof(*frames));
	struct names *names = frames ? names_create(true) : NULL;
	int code = SQLITE_OK;

	if (!names) {
		free(frames);
		return SQLITE_NOMEM;
	}
	frames->names = names;
	frames->owned = (struct hash_table)HASH_TABLE_OF(struct owned_line, SIZE_MAX);
	names_enter(names, space);
	/* The first one's destructor runs when that fails, too. */
	for (size_t i = 0; !code && i < sizeof(functions) / sizeof(functions[0]); i++)
		code = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments,
		                                  SQLITE_UTF8 | SQLITE_DIRECTONLY, frames, functions[i].call,
		                                  NULL, NULL, i ? NULL : free_frames);
	return code ? code : made_table_add(db, &report_functions, frames);
}
