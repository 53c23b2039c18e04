/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackFrames(trace), the command's own SQL function: the functions on a stack as
 * the exports name them, so that a report and an export of one file say the same.
 *
 * A JSON array, leaf first, one element a function: [function, module, has a name].
 * A function without a name is module+0x12, module is NULL where the address is in
 * none. Inlined functions come before the one that they were inlined into.
 */
#include "cmd/file/stack_frames.h"

#include <stdlib.h>

#include "cmd/file/trace_file.h"
#include "export/export.h"
#include "export/names.h"
#include "export/text.h"
#include "sql/trace_file_functions.h"

static void write_line(FILE *json, const struct export_line *line, const struct export_module *module)
{
	fputc('[', json);
	export_write_text(json, line->function);
	fputc(',', json);
	if (module)
		export_write_text(json, module->name);
	else
		fputs("null", json);
	fputs(line->symbol[0] ? ",1]" : ",0]", json);
}

static void write_stack(FILE *json, const struct export_stack *stack)
{
	const char *between = "";

	fputc('[', json);
	for (size_t i = 0; i < stack->count; i++)
		for (size_t k = 0; k < stack->frames[i]->line_count; k++, between = ",") {
			fputs(between, json);
			write_line(json, &stack->frames[i]->lines[k], stack->frames[i]->module);
		}
	fputc(']', json);
}

static void stack_frames(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct names *names = sqlite3_user_data(context);
	const char *trace = (const char *)sqlite3_value_text(argv[0]);
	bool bad = false;
	char *text = NULL;
	size_t size;

	(void)argc;
	const struct export_stack *stack = names_stack(names, trace ? trace : "[]", false, &bad);
	FILE *json = stack ? open_memstream(&text, &size) : NULL;
	if (json)
		write_stack(json, stack);
	if (bad)
		sqlite3_result_error(context, "a trace is no array of addresses", -1);
	else if (!json || fclose(json))
		sqlite3_result_error_nomem(context);
	else
		sqlite3_result_text(context, text, (int)size, SQLITE_TRANSIENT);
	free(text);
}

static void free_names(void *names)
{
	names_free(names);
}

int stack_frames_add(sqlite3 *db)
{
	struct names *names = names_create(true);

	if (!names)
		return SQLITE_NOMEM;
	names_enter(names, trace_file_space(db));
	/* The destructor runs when that fails, too. */
	return sqlite3_create_function_v2(db, "stackFrames", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, names,
	                                  stack_frames, NULL, NULL, free_names);
}
