/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's modules are read when the connection is attached, and where it grows those that it has
 * got since with the first address in one of them; its names with the first address. Both are copies
 * in memory: a statement kept on the host's connection would make sqlite3_close() fail.
 */
#include "sql/trace_file_functions.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"
#include "sql/functions.h"
#include "sqlite/session/session.h"
#include "sqlite/library/calling.h"
#include "store/file/schema.h"
#include "store/store.h"
#include "symbol/symbol.h"
#include "frames/address.h"
#include "frames/module_rows.h"

struct text {
	int64_t id;
	char *text;
};

/* One function at an address. */
struct frame {
	uint64_t address;
	struct symbol_frame symbol; /* strings are in `texts` */
};

struct trace_file_functions {
	struct address_space space; /* first: the callbacks get this */
	struct session session;     /* what the functions need of one */
	struct module_map modules;
	int64_t newest_module;
	bool names_were_read;
	VECTOR(struct text) texts;   /* by id */
	VECTOR(struct frame) frames; /* by address as a signed number, the innermost first */
};

/* --- reading the file --------------------------------------------------------- */

static bool add_module(struct trace_file_functions *names, sqlite3_stmt *row)
{
	return module_rows_add(&names->modules, row);
}

static bool add_text(struct trace_file_functions *names, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 1);
	struct text *text = vector_add(&names->texts);

	if (!text)
		return false;
	text->id = sqlite3_column_int64(row, 0);
	text->text = strdup(name ? name : "");
	return text->text;
}

COMPARE_BY(compare_texts, struct text, id)

static const char *text_of(const struct trace_file_functions *names, int64_t id)
{
	const struct text wanted = { id, NULL }, *found = NULL;

	if (names->texts.count)
		found = bsearch(&wanted, names->texts.items, names->texts.count, sizeof(wanted),
		                compare_texts);
	return found ? found->text : NULL;
}

static bool add_frame(struct trace_file_functions *names, sqlite3_stmt *row)
{
	struct frame *frame = vector_add(&names->frames);
	int line = sqlite3_column_int(row, 3);

	if (!frame)
		return false;
	frame->address = (uint64_t)sqlite3_column_int64(row, 0);
	frame->symbol.function = text_of(names, sqlite3_column_int64(row, 1));
	frame->symbol.file = line > 0 ? text_of(names, sqlite3_column_int64(row, 2)) : NULL;
	frame->symbol.line = frame->symbol.file ? line : 0;
	frame->symbol.is_inlined = sqlite3_column_int(row, 4);
	return true;
}

/* Calls `add` for each row. An SQLite result. */
static int read_rows(struct trace_file_functions *names, const char *sql,
                     bool (*add)(struct trace_file_functions *names, sqlite3_stmt *row))
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(names->session.db, sql, -1, &row, NULL);

	while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = add(names, row) ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The number that the statement gives, 0 when it gives none. */
static int64_t read_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *row = NULL;
	int64_t number = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
		number = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return number;
}

static int64_t find_newest_module(const struct trace_file_functions *names)
{
	return read_number(names->session.db, "SELECT max(id) FROM modules");
}

static void read_new_modules(struct trace_file_functions *names)
{
	int64_t newest = find_newest_module(names);
	char *sql = newest > names->newest_module
	                    ? sqlite3_mprintf(MODULE_ROWS " WHERE id > %lld", (long long)names->newest_module)
	                    : NULL;

	if (!sql)
		return;
	names->newest_module = newest;
	read_rows(names, sql, add_module);
	sqlite3_free(sql);
}

/* Addresses that cannot be read in a damaged file have no name. */
static void read_names(struct trace_file_functions *names)
{
	names->names_were_read = true;
	if (read_rows(names, "SELECT id, name FROM names ORDER BY id", add_text) == SQLITE_OK)
		read_rows(names,
		          "SELECT address, symbol, file, line, inlined FROM frames ORDER BY address, level",
		          add_frame);
}

/* --- looking up ------------------------------------------------------------------- */

static const struct module *locate(const struct address_space *space, uint64_t address)
{
	struct trace_file_functions *names = (struct trace_file_functions *)space;
	const struct module *module = module_map_find(&names->modules, address);

	if (module || address & STORE_NOWHERE)
		return module;
	read_new_modules(names);
	return module_map_find(&names->modules, address);
}

static size_t recall(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                     size_t room)
{
	struct trace_file_functions *names = (struct trace_file_functions *)space;
	size_t at, count = 0;

	if (!names->names_were_read)
		read_names(names);
	at = SEARCH_COUNT(names->frames.count, i, (int64_t)names->frames.items[i].address < (int64_t)address);
	for (; count < room && at < names->frames.count && names->frames.items[at].address == address; at++)
		frames[count++] = names->frames.items[at].symbol;
	return count;
}

/* --- one connection ------------------------------------------------------------------ */

/* SQLite calls it when the functions and statements of the connection are gone. */
static void detach(void *context)
{
	struct trace_file_functions *names = context;

	for (size_t i = 0; i < names->texts.count; i++)
		free(names->texts.items[i].text);
	module_rows_free(&names->modules);
	vector_free(&names->texts);
	vector_free(&names->frames);
	free(names);
}

/* A collation is here for its destructor, and says that the connection is attached. */
#define COLLATION "queryprof_trace"

static int compare_bytes(void *context, int size, const void *left, int other_size, const void *right)
{
	int order = memcmp(left, right, (size_t)(size < other_size ? size : other_size));

	(void)context;
	return order ? order : size - other_size;
}

static int attach(sqlite3 *db, char **error, const struct address_space **space)
{
	struct trace_file_functions *names;
	int code;

	if (read_number(db, "PRAGMA main.application_id") != STORE_APPLICATION_ID) {
		*error = sqlite3_mprintf("queryprof: the main database is not a trace file");
		return SQLITE_ERROR;
	}
	if (read_number(db, "SELECT 1 FROM pragma_collation_list WHERE name = '" COLLATION "'"))
		return SQLITE_OK;
	names = calloc(1, sizeof(*names));
	if (!names)
		return SQLITE_NOMEM;
	names->space = (struct address_space){ .locate = locate, .recall = recall };
	names->session.db = db;
	names->session.space = &names->space;
	session_defaults(&names->session.settings);
	/* First: what comes meanwhile is rather read twice than not at all. */
	names->newest_module = find_newest_module(names);
	/* Where that fails SQLite has not called detach(). */
	code = sqlite3_create_collation_v2(db, COLLATION, SQLITE_UTF8, names, compare_bytes, detach);
	if (code)
		detach(names);
	else
		code = read_rows(names, MODULE_ROWS, add_module);
	if (code) {
		*error = sqlite3_mprintf("queryprof: %s", sqlite3_errmsg(db));
		return code;
	}
	if (space)
		*space = &names->space;
	return functions_register(&names->session, error);
}

int trace_file_functions_attach(sqlite3 *db, char **error, const sqlite3_api_routines *api,
                                const struct address_space **space)
{
	const struct host_library *library = host_adopt(api, error);
	struct call call;
	int code;

	if (!library)
		return SQLITE_ERROR;
	call_enter(&call, library, __builtin_frame_address(0));
	code = attach(db, error, space);
	call_leave(&call);
	return code;
}
