/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackFrames(trace), the command's own SQL function: the functions on a stack as
 * the exports name them, so that a report and an export of one file say the same.
 *
 * A JSON array, leaf first, one element a function: [function, module, has a name, place, is the program's].
 * A function without a name is module+0x12, module is NULL where the address is in
 * none, place is "file.c:12", "" where lines are not known; and see frame_owner.h. Inlined functions come
 * before the one that they were inlined into.
 */
#include "cmd/file/stack_frames.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/text.h"
#include "cmd/file/frame_owner.h"
#include "cmd/file/trace_file.h"
#include "export/export.h"
#include "export/names.h"
#include "export/text.h"
#include "sql/trace_file_functions.h"

/* Lines are made once, and are of many stacks. */
struct owned_line {
	struct hash line;
	bool is_of_program;
};

struct frame_names {
	struct names *names;
	struct hash_table owned;
};

static bool is_of_program(struct frame_names *frames, const struct export_line *line,
                          const struct export_module *module)
{
	struct hash key = hash_begin(0);

	hash_word(&key, (uintptr_t)line);
	key = hash_end(key);
	const struct owned_line *known = hash_table_find(&frames->owned, key);
	if (known)
		return known->is_of_program;
	/* A number in the place of a name is no function that anybody looks for. */
	bool is = line->symbol[0] &&
	          frame_is_of_program(line->function, module ? module->name : "", line->file);
	struct owned_line *added = hash_table_add(&frames->owned, key);
	if (added)
		added->is_of_program = is;
	return is;
}

static void write_place(FILE *json, const struct export_line *line)
{
	const char *slash = strrchr(line->file, '/');
	char *place =
		line->line > 0 ? text_format("%s:%d", slash ? slash + 1 : line->file, line->line) : NULL;

	export_write_text(json, place ? place : "");
	free(place);
}

static void write_line(FILE *json, const struct export_line *line, const struct export_module *module,
                       bool is_of_program)
{
	fputc('[', json);
	export_write_text(json, line->function);
	fputc(',', json);
	if (module)
		export_write_text(json, module->name);
	else
		fputs("null", json);
	fputs(line->symbol[0] ? ",1," : ",0,", json);
	write_place(json, line);
	fputs(is_of_program ? ",1]" : ",0]", json);
}

static void write_stack(FILE *json, struct frame_names *frames, const struct export_stack *stack)
{
	const char *between = "";

	fputc('[', json);
	for (size_t i = 0; i < stack->count; i++)
		for (size_t k = 0; k < stack->frames[i]->line_count; k++, between = ",") {
			const struct export_line *line = &stack->frames[i]->lines[k];

			fputs(between, json);
			write_line(json, line, stack->frames[i]->module,
			           is_of_program(frames, line, stack->frames[i]->module));
		}
	fputc(']', json);
}

static void stack_frames(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct frame_names *frames = sqlite3_user_data(context);
	const char *trace = (const char *)sqlite3_value_text(argv[0]);
	bool bad = false;
	char *text = NULL;
	size_t size;

	(void)argc;
	const struct export_stack *stack = names_stack(frames->names, trace ? trace : "[]", false, &bad);
	FILE *json = stack ? open_memstream(&text, &size) : NULL;
	if (json)
		write_stack(json, frames, stack);
	if (bad)
		sqlite3_result_error(context, "a trace is no array of addresses", -1);
	else if (!json || fclose(json))
		sqlite3_result_error_nomem(context);
	else
		sqlite3_result_text(context, text, (int)size, SQLITE_TRANSIENT);
	free(text);
}

static void free_frames(void *data)
{
	struct frame_names *frames = data;

	names_free(frames->names);
	hash_table_free(&frames->owned);
	free(frames);
}

int stack_frames_add(sqlite3 *db)
{
	struct frame_names *frames = malloc(sizeof(*frames));
	struct names *names = frames ? names_create(true) : NULL;

	if (!names) {
		free(frames);
		return SQLITE_NOMEM;
	}
	*frames = (struct frame_names){ names, HASH_TABLE_OF(struct owned_line, SIZE_MAX) };
	names_enter(names, trace_file_space(db));
	/* The destructor runs when that fails, too. */
	return sqlite3_create_function_v2(db, "stackFrames", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, frames,
	                                  stack_frames, NULL, NULL, free_frames);
}
