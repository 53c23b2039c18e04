/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traceFrames(trace), the command's own SQL function: the functions on a stack as
 * the exports name them, so that a report and an export of one file say the same.
 *
 * A JSON array, leaf first, one element a function: [function, module, has a name].
 * A function without a name is module+0x12, module is NULL where the address is in
 * none. Inlined functions come before the one that they were inlined into.
 */
#include "trace_frames.h"

#include <stdlib.h>

#include "export/names.h"
#include "export/export.h"
#include "sql/trace_names.h"
#include "trace_file.h"

static void append_text(sqlite3_str *json, const char *text)
{
	sqlite3_str_appendchar(json, 1, '"');
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
			sqlite3_str_appendf(json, "\\u%04x", (unsigned char)*text);
		else
			sqlite3_str_appendchar(json, 1, *text);
	sqlite3_str_appendchar(json, 1, '"');
}

static void append_line(sqlite3_str *json, const struct export_line *line, const struct export_module *module)
{
	sqlite3_str_appendall(json, sqlite3_str_length(json) > 1 ? ",[" : "[");
	append_text(json, line->function);
	sqlite3_str_appendchar(json, 1, ',');
	if (module)
		append_text(json, module->name);
	else
		sqlite3_str_appendall(json, "null");
	sqlite3_str_appendall(json, line->symbol[0] ? ",1]" : ",0]");
}

static void trace_frames(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct names *names = sqlite3_user_data(context);
	const char *trace = (const char *)sqlite3_value_text(argv[0]);
	bool bad = false;

	(void)argc;
	const struct export_stack *stack = names_stack(names, trace ? trace : "[]", false, &bad);
	if (bad)
		sqlite3_result_error(context, "a trace is no array of addresses", -1);
	else if (!stack)
		sqlite3_result_error_nomem(context);
	if (!stack)
		return;
	sqlite3_str *json = sqlite3_str_new(sqlite3_context_db_handle(context));
	sqlite3_str_appendchar(json, 1, '[');
	for (size_t i = 0; i < stack->count; i++)
		for (size_t k = 0; k < stack->frames[i]->line_count; k++)
			append_line(json, &stack->frames[i]->lines[k], stack->frames[i]->module);
	sqlite3_str_appendchar(json, 1, ']');
	if (sqlite3_str_errcode(json))
		sqlite3_result_error_code(context, sqlite3_str_errcode(json));
	else
		sqlite3_result_text(context, sqlite3_str_value(json), sqlite3_str_length(json),
		                    SQLITE_TRANSIENT);
	sqlite3_free(sqlite3_str_finish(json));
}

static void free_names(void *names)
{
	names_free(names);
}

int trace_frames_add(sqlite3 *db)
{
	struct names *names = names_create(true);

	if (!names)
		return SQLITE_NOMEM;
	names_enter(names, trace_file_space());
	/* The destructor runs when that fails, too. */
	return sqlite3_create_function_v2(db, "traceFrames", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, names,
	                                  trace_frames, NULL, NULL, free_names);
}
