/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of functions; functions.h says what each does. Their context is the
 * session, which outlives them: SQLite drops a connection's functions before the
 * module that the session goes with.
 */
#include "sql/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/text_sums.h"
#include "sqlite/runs/own_statements.h"
#include "sqlite/session/labels.h"
#include "sqlite/session/session.h"
#include "sqlite/session/setting_change.h"
#include "symbol/symbol.h"
#include "frames/address.h"
#include "frames/collapse.h"
#include "frames/process_space.h"
#include "frames/stack_text.h"

#define SEPARATOR_MAX 1000
#define SHOWN 60 /* bytes of a bad argument that a message repeats at most */

__attribute__((format(printf, 2, 3))) static void result_error(sqlite3_context *context, const char *format,
                                                               ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = sqlite3_vmprintf(format, arguments);
	va_end(arguments);
	if (text)
		sqlite3_result_error(context, text, -1);
	else
		sqlite3_result_error_nomem(context);
	sqlite3_free(text);
}

/* How much of a bad argument a message repeats, for "%.*s". */
static int shown(const char *text)
{
	return (int)text_fit(text, SHOWN);
}

/* The result is a malloc'ed text, which SQLite frees; NULL gives NULL. */
static void result_text(sqlite3_context *context, char *text)
{
	if (text)
		sqlite3_result_text(context, text, -1, free);
}

/* The argument's text. NULL: the argument is NULL, or the result is an error. */
static const char *text_argument(sqlite3_context *context, const char *function, sqlite3_value *argument)
{
	const char *text;

	if (sqlite3_value_type(argument) == SQLITE_NULL)
		return NULL;
	if (sqlite3_value_type(argument) == SQLITE_BLOB) {
		result_error(context, "%s: a blob; expected a text", function);
		return NULL;
	}
	text = (const char *)sqlite3_value_text(argument);
	if (!text)
		sqlite3_result_error_nomem(context);
	return text;
}

/* --- addresses -------------------------------------------------------------- */

static bool introspection_allowed(sqlite3_context *context, const char *function)
{
	const struct session *session = sqlite3_user_data(context);

	if (session->settings.allow_introspection_functions)
		return true;
	result_error(context, "%s: not allowed while allow_introspection_functions is 0", function);
	return false;
}

static const struct address_space *space_of(sqlite3_context *context)
{
	const struct session *session = sqlite3_user_data(context);

	return session->space ? session->space : process_space();
}

static void call_with_address(sqlite3_context *context, const char *function, sqlite3_value *argument,
                              char *(*describe)(const struct address_space *, uint64_t))
{
	uint64_t address;

	if (!introspection_allowed(context, function) || sqlite3_value_type(argument) == SQLITE_NULL)
		return;
	if (sqlite3_value_type(argument) == SQLITE_INTEGER) {
		address = (uint64_t)sqlite3_value_int64(argument);
	} else {
		/* A number out of JSON may be a text, an addition may be a real. */
		const char *text = text_argument(context, function, argument);

		if (!text)
			return;
		if (!address_parse(text, &address)) {
			result_error(context, "%s: '%.*s' is not an address; expected an integer", function,
			             shown(text), text);
			return;
		}
	}
	result_text(context, describe(space_of(context), address));
}

#define OF_ADDRESS(function, name, describe)                                                                 \
	static void function(sqlite3_context *context, int argc, sqlite3_value **argv)                       \
	{                                                                                                    \
		(void)argc;                                                                                  \
		call_with_address(context, name, argv[0], describe);                                         \
	}
OF_ADDRESS(address_to_symbol, "addressToSymbol", address_symbol)
OF_ADDRESS(address_to_line, "addressToLine", address_line)
OF_ADDRESS(address_to_line_with_inlines, "addressToLineWithInlines", address_line_with_inlines)
OF_ADDRESS(build_id, "buildId", address_build_id)

static void trace_to_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *trace, *separator = "\n";
	char *text;
	bool bad;

	if (!introspection_allowed(context, "traceToText"))
		return;
	trace = text_argument(context, "traceToText", argv[0]);
	if (trace && argc > 1)
		separator = text_argument(context, "traceToText", argv[1]);
	if (!trace || !separator)
		return;
	if (strlen(separator) > SEPARATOR_MAX) {
		result_error(context, "traceToText: the separator has %lld bytes; at most %d are allowed",
		             (long long)strlen(separator), SEPARATOR_MAX);
		return;
	}
	text = stack_text(space_of(context), trace, separator, &bad);
	if (bad)
		result_error(context, "traceToText: '%.*s' is not a trace; expected a JSON array of integers",
		             shown(trace), trace);
	else if (!text)
		sqlite3_result_error_nomem(context);
	else
		result_text(context, text);
}

/* --- flameGraph(): stacks with weights, whose names are looked up once, however often a stack came --- */

static bool is_stack(const char *stack)
{
	struct address_reader reader = { .at = stack };
	uint64_t address;
	int next;

	while ((next = address_reader_next(&reader, &address)) > 0)
		;
	return next == 0;
}

/* False: with *bad `stack` is no JSON array of addresses, without there is no memory. Either ends the
 * aggregate. */
static bool add_stack(struct text_sums *stacks, const char *stack, int64_t weight, bool *bad)
{
	size_t known = stacks->list.count;

	*bad = false;
	if (!text_sums_add(stacks, stack, weight))
		return false;
	*bad = stacks->list.count > known && !is_stack(stack);
	return !*bad;
}

static bool collapse_text(struct collapse *collapse, const struct address_space *space,
                          const struct text_sum *stack)
{
	struct address_reader reader = { .at = stack->text };
	VECTOR(uint64_t) addresses = { 0 }; /* leaf first */
	uint64_t address;
	bool fine = true;

	while (fine && address_reader_next(&reader, &address) > 0)
		fine = vector_push(&addresses, address);
	for (size_t i = addresses.count; fine && i-- > 0;) {
		char *text = address_text(space, addresses.items[i]);
		fine = text && collapse_frame(collapse, text);
		free(text);
	}
	vector_free(&addresses);
	return fine && collapse_stack(collapse, stack->sum);
}

/* The lines, with the names that the addresses have in `space`, without an end of the last one; malloc'ed,
 * NULL: no memory. */
static char *collapsed_lines(const struct text_sums *stacks, const struct address_space *space)
{
	struct collapse collapse = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool written = out;

	for (size_t i = 0; written && i < stacks->list.count; i++)
		written = collapse_text(&collapse, space, &stacks->list.items[i]);
	written = written && collapse_write(&collapse, out);
	collapse_free(&collapse);
	if (out && fclose(out) != 0)
		written = false;
	if (!written) {
		free(text);
		return NULL;
	}
	if (size)
		text[size - 1] = 0;
	return text;
}

static bool weight_argument(sqlite3_context *context, sqlite3_value *argument, int64_t *weight)
{
	const char *text;

	switch (sqlite3_value_numeric_type(argument)) {
	case SQLITE_INTEGER:
	case SQLITE_FLOAT: /* SQLite converts it, and keeps it in the range */
		*weight = sqlite3_value_int64(argument);
		return true;
	default: break;
	}
	text = text_argument(context, "flameGraph", argument);
	if (text)
		result_error(context, "flameGraph: '%.*s' is not a weight; expected a number", shown(text),
		             text);
	return false;
}

static void flame_graph_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct text_sums *stacks; /* zeroed at first */
	const char *trace;
	int64_t weight = 1;
	bool bad = false;

	if (!introspection_allowed(context, "flameGraph"))
		return;
	if (argc > 1 && (sqlite3_value_type(argv[1]) == SQLITE_NULL))
		return;
	trace = text_argument(context, "flameGraph", argv[0]);
	if (!trace || (argc > 1 && !weight_argument(context, argv[1], &weight)))
		return;
	stacks = sqlite3_aggregate_context(context, sizeof(*stacks));
	if (!stacks || !add_stack(stacks, trace, weight, &bad)) {
		if (bad)
			result_error(context,
			             "flameGraph: '%.*s' is not a trace; expected a JSON array of integers",
			             shown(trace), trace);
		else
			sqlite3_result_error_nomem(context);
	}
}

/* Also called after a failed step, to clean up. */
static void flame_graph_final(sqlite3_context *context)
{
	struct text_sums *stacks = sqlite3_aggregate_context(context, 0);
	char *text;

	if (!stacks)
		return; /* no rows: NULL */
	text = collapsed_lines(stacks, space_of(context));
	text_sums_free(stacks);
	if (text)
		result_text(context, text);
	else
		sqlite3_result_error_nomem(context);
}

static void demangle(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *name = text_argument(context, "demangle", argv[0]);
	const char *style = name && argc > 1 ? text_argument(context, "demangle", argv[1]) : "";
	char *text;

	if (!name || !style)
		return;
	if (*style && strcmp(style, "distinct") != 0) {
		result_error(context, "demangle: there is no style '%.*s'; expected 'distinct'", shown(style),
		             style);
		return;
	}
	text = *style ? symbol_demangle_distinct(name) : symbol_demangle(name);
	if (text)
		result_text(context, text);
	else
		sqlite3_result_value(context, argv[0]);
}

/* --- settings --------------------------------------------------------------- */

/* Statements that read or change settings, such as those made from queryprof's PRAGMAs, are not logged. */

static void result_setting(sqlite3_context *context, const struct session *session, const char *name)
{
	const struct setting *setting = settings_find(name);
	char *text = settings_get(&session->settings, name);

	if (!text) {
		result_error(context, "%.*s: there is no such setting", shown(name), name);
	} else if (setting_is_text(setting)) {
		result_text(context, text);
	} else {
		sqlite3_result_int64(context, strtoll(text, NULL, 10));
		free(text);
	}
}

static void get_setting(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *name = text_argument(context, "get_setting", argv[0]);

	(void)argc;
	own_statements_disown(sqlite3_context_db_handle(context));
	if (name)
		result_setting(context, sqlite3_user_data(context), name);
}

static void set_setting(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct session *session = sqlite3_user_data(context);
	const char *name = text_argument(context, "set_setting", argv[0]);
	const char *value;
	char *error;

	(void)argc;
	own_statements_disown(sqlite3_context_db_handle(context));
	if (!name)
		return;
	if (sqlite3_value_type(argv[1]) == SQLITE_NULL) {
		result_error(context, "%.*s = NULL; expected a value, or 'DEFAULT' to restore the default",
		             shown(name), name);
		return;
	}
	value = text_argument(context, "set_setting", argv[1]);
	if (!value)
		return;
	if (!session_set(session, name, value, SETTING_FROM_SQL, &error))
		result_setting(context, session, name);
	else if (error)
		result_error(context, "%s", error);
	else
		sqlite3_result_error_nomem(context);
	free(error);
}

static void change_label(sqlite3_context *context, struct session *session, const char *key,
                         sqlite3_value *value)
{
	const char *text = NULL;
	int64_t number = 0;
	bool is_number = sqlite3_value_type(value) == SQLITE_INTEGER;
	char *error = NULL, *labels;

	if (is_number)
		number = sqlite3_value_int64(value);
	else if (sqlite3_value_type(value) != SQLITE_NULL &&
	         !(text = text_argument(context, "set_label", value)))
		return;
	labels = session_labels_with(&session->settings, key, text, is_number ? &number : NULL);
	if (labels && !session_set(session, "query_profiler_labels", labels, SETTING_FROM_SQL, &error))
		sqlite3_result_value(context, value);
	else if (error)
		result_error(context, "%s", error);
	else
		sqlite3_result_error_nomem(context);
	free(error);
	free(labels);
}

static void set_label(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *key = text_argument(context, "set_label", argv[0]);

	(void)argc;
	own_statements_disown(sqlite3_context_db_handle(context));
	if (key && *key)
		change_label(context, sqlite3_user_data(context), key, argv[1]);
	else if (key)
		result_error(context, "set_label: the key is empty; expected a text");
}

/* ---------------------------------------------------------------------------- */

static const struct function {
	const char *name;
	int arguments;
	void (*call)(sqlite3_context *, int, sqlite3_value **);
	void (*final)(sqlite3_context *); /* of an aggregate, whose step `call` is then */
} functions[] = {
	{ "addressToSymbol", 1, address_to_symbol, NULL },
	{ "addressToLine", 1, address_to_line, NULL },
	{ "addressToLineWithInlines", 1, address_to_line_with_inlines, NULL },
	{ "buildId", 1, build_id, NULL },
	{ "traceToText", 1, trace_to_text, NULL },
	{ "traceToText", 2, trace_to_text, NULL },
	{ "flameGraph", 1, flame_graph_step, flame_graph_final },
	{ "flameGraph", 2, flame_graph_step, flame_graph_final },
	{ "demangle", 1, demangle, NULL },
	{ "demangle", 2, demangle, NULL },
	/* The others are about a host's connection, not about a trace file. */
	{ "set_setting", 2, set_setting, NULL },
	{ "get_setting", 1, get_setting, NULL },
	{ "set_label", 2, set_label, NULL },
};
#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

const char *functions_name_at(size_t index)
{
	for (size_t i = 0; i < FUNCTIONS && functions[i].call != set_setting; i++)
		if ((!i || strcmp(functions[i].name, functions[i - 1].name) != 0) && !index--)
			return functions[i].name;
	return NULL;
}

/* Before 3.50, SQLite applies SQLITE_DIRECTONLY to CHECK constraints only for deterministic functions. So all
 * are declared deterministic, although two statements may get different results. */
int functions_register(struct session *session, char **error)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct function *function = &functions[i];
		int rc = sqlite3_create_function_v2(session->db, function->name, function->arguments,
		                                    SQLITE_UTF8 | SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC,
		                                    session, function->final ? NULL : function->call,
		                                    function->final ? function->call : NULL, function->final,
		                                    NULL);

		if (rc) {
			*error = sqlite3_mprintf("queryprof: function %s: %s", function->name,
			                         sqlite3_errmsg(session->db));
			return rc;
		}
	}
	return SQLITE_OK;
}

/* --- schemas that were read before ------------------------------------------ */

static int read_flag(void *context, int argc, char **values, char **names)
{
	(void)names;
	*(bool *)context = argc > 0 && values[0] && values[0][0] == '1';
	return 0;
}

void functions_guard(struct session *session)
{
	sqlite3 *db = session->db;
	int used = 0, most = 0;
	bool writable = false;

	sqlite3_db_status(db, SQLITE_DBSTATUS_SCHEMA_USED, &used, &most, 0);
	if (!used)
		return;
	sqlite3_exec(db, "PRAGMA writable_schema", read_flag, &writable, NULL);
	sqlite3_exec(db, "PRAGMA writable_schema = RESET", NULL, NULL, NULL);
	if (writable)
		sqlite3_exec(db, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
}
