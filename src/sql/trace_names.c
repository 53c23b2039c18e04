/*
 * The file's modules are read when the connection is attached, its names with the first
 * address. Both are copies in memory: a statement kept on the host's connection would
 * make sqlite3_close() fail.
 */
#include "sql/trace_names.h"

#include <stdlib.h>
#include <string.h>

#include "sql/functions.h"
#include "store/file/database.h"
#include "store/store.h"
#include "symbol/symbol.h"
#include "trace/process_space.h"
#include "watch/calling.h"

struct place {
	uint64_t base, extent;
	struct store_location object; /* of the base; owns its strings */
};

struct text {
	int64_t id;
	char *text;
};

/* The functions at one address are a row each, the innermost first. */
struct frame_row {
	uint64_t address;
	struct symbol_frame frame; /* strings are in `texts` */
};

struct trace_names {
	struct session session; /* what the functions need of one */
	struct place *places;   /* by base */
	size_t place_count;
	bool names_were_read;
	struct text *texts; /* by id */
	size_t text_count;
	struct frame_row *frames; /* by address */
	size_t frame_count;
};

static struct trace_names *current;

/* --- reading the file --------------------------------------------------------- */

static char *copy_column(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return strdup(text ? text : "");
}

static bool add_place(struct trace_names *names, sqlite3_stmt *row)
{
	struct place *grown = reallocarray(names->places, names->place_count + 1, sizeof(*grown));
	struct place *place;

	if (!grown)
		return false;
	names->places = grown;
	place = &grown[names->place_count++];
	*place = (struct place){
		.base = (uint64_t)sqlite3_column_int64(row, 0),
		.extent = (uint64_t)sqlite3_column_int64(row, 1),
		.object = { .address = (uint64_t)sqlite3_column_int64(row, 2),
		            .path = copy_column(row, 3),
		            .build_id = copy_column(row, 4),
		            .file_size = (uint64_t)sqlite3_column_int64(row, 5),
		            .mtime_ns = sqlite3_column_int64(row, 6) },
	};
	return place->object.path && place->object.build_id;
}

static bool add_text(struct trace_names *names, sqlite3_stmt *row)
{
	struct text *grown = reallocarray(names->texts, names->text_count + 1, sizeof(*grown));

	if (!grown)
		return false;
	names->texts = grown;
	grown[names->text_count] = (struct text){ sqlite3_column_int64(row, 0), copy_column(row, 1) };
	return grown[names->text_count++].text;
}

static int compare_texts(const void *left, const void *right)
{
	const struct text *a = left, *b = right;
	return (a->id > b->id) - (a->id < b->id);
}

static const char *text_of(const struct trace_names *names, int64_t id)
{
	const struct text wanted = { id, NULL };
	const struct text *found = names->text_count ? bsearch(&wanted, names->texts, names->text_count,
	                                                       sizeof(wanted), compare_texts)
	                                             : NULL;

	return found ? found->text : NULL;
}

static bool add_frame(struct trace_names *names, sqlite3_stmt *row)
{
	struct frame_row *grown = reallocarray(names->frames, names->frame_count + 1, sizeof(*grown));
	int line = sqlite3_column_int(row, 3);
	const char *file = line > 0 ? text_of(names, sqlite3_column_int64(row, 2)) : NULL;

	if (!grown)
		return false;
	names->frames = grown;
	grown[names->frame_count++] = (struct frame_row){
		.address = (uint64_t)sqlite3_column_int64(row, 0),
		.frame = { .function = text_of(names, sqlite3_column_int64(row, 1)),
		           .file = file,
		           .line = file ? line : 0,
		           .is_inlined = sqlite3_column_int(row, 4) },
	};
	return true;
}

/* Calls `add` for each row. An SQLite result. */
static int read_rows(struct trace_names *names, const char *sql,
                     bool (*add)(struct trace_names *names, sqlite3_stmt *row))
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(names->session.db, sql, -1, &row, NULL);

	while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = add(names, row) ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	return (a->base > b->base) - (a->base < b->base);
}

static int read_places(struct trace_names *names)
{
	int code = read_rows(names,
	                     "SELECT base, extent, elf_start, path, build_id, file_size, mtime_ns"
	                     " FROM modules",
	                     add_place);

	if (names->place_count)
		qsort(names->places, names->place_count, sizeof(*names->places), compare_places);
	return code;
}

/* The rows of a WITHOUT ROWID table come in the order of its key; stored negative
 * addresses come first, so the order is that of signed numbers. What a damaged file
 * does not give has no name. */
static void read_names(struct trace_names *names)
{
	names->names_were_read = true;
	if (read_rows(names, "SELECT id, name FROM names ORDER BY id", add_text) == SQLITE_OK)
		read_rows(names,
		          "SELECT address, symbol, file, line, inlined FROM frames ORDER BY address, level",
		          add_frame);
}

/* --- looking up ------------------------------------------------------------------- */

/* NULL: in none. */
static const struct place *find_place(uint64_t address)
{
	const struct place *places = current->places;
	size_t low = 0, high = current->place_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (places[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address - places[low - 1].base >= places[low - 1].extent)
		return NULL;
	return &places[low - 1];
}

static bool locate(uint64_t address, struct store_location *location)
{
	const struct place *place = find_place(address);

	if (!place)
		return false;
	*location = place->object;
	location->offset = address - place->base;
	location->address += location->offset;
	return true;
}

bool trace_names_module(uint64_t address, struct trace_module *module)
{
	const struct place *place = find_place(address);

	if (place)
		*module = (struct trace_module){
			.path = place->object.path,
			.build_id = place->object.build_id,
			.start = place->base,
			.end = place->base + place->extent,
		};
	return place;
}

static size_t find_frames(uint64_t address, struct symbol_frame *frames, size_t room)
{
	size_t low = 0, high, count = 0;

	if (!current->names_were_read)
		read_names(current);
	high = current->frame_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((int64_t)current->frames[middle].address < (int64_t)address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; count < room && low < current->frame_count && current->frames[low].address == address; low++)
		frames[count++] = current->frames[low].frame;
	return count;
}

/* --- one connection ------------------------------------------------------------------ */

static void use(struct trace_names *names)
{
	current = names;
	address_use_locator(names ? locate : NULL);
	address_use_reader(names ? find_frames : NULL);
}

/* SQLite calls it when the functions and statements of the connection are gone. */
static void detach(void *context)
{
	struct trace_names *names = context;

	if (current == names)
		use(NULL);
	for (size_t i = 0; i < names->place_count; i++) {
		free((char *)names->places[i].object.path);
		free((char *)names->places[i].object.build_id);
	}
	for (size_t i = 0; i < names->text_count; i++)
		free(names->texts[i].text);
	free(names->places);
	free(names->texts);
	free(names->frames);
	free(names);
}

/* A collation for its destructor: it is asked for by no schema. */
static int compare_bytes(void *context, int size, const void *left, int other_size, const void *right)
{
	int order = memcmp(left, right, (size_t)(size < other_size ? size : other_size));

	(void)context;
	return order ? order : size - other_size;
}

static bool is_trace_file(sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	bool is = sqlite3_prepare_v2(db, "PRAGMA main.application_id", -1, &row, NULL) == SQLITE_OK &&
	          sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int64(row, 0) == STORE_APPLICATION_ID;

	sqlite3_finalize(row);
	return is;
}

static int attach(sqlite3 *db, char **error)
{
	struct trace_names *names;
	int code;

	if (current && current->session.db == db)
		return SQLITE_OK;
	if (!is_trace_file(db)) {
		*error = sqlite3_mprintf("queryprof: the main database is not a trace file");
		return SQLITE_ERROR;
	}
	names = calloc(1, sizeof(*names));
	if (!names)
		return SQLITE_NOMEM;
	names->session.db = db;
	settings_defaults(&names->session.settings);
	/* Where that fails SQLite has not called detach(). */
	code = sqlite3_create_collation_v2(db, "queryprof_trace", SQLITE_UTF8, names, compare_bytes, detach);
	if (code)
		detach(names);
	else
		code = read_places(names);
	if (code) {
		*error = sqlite3_mprintf("queryprof: %s", sqlite3_errmsg(db));
		return code;
	}
	use(names);
	return functions_register(&names->session, error);
}

int trace_names_attach(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	const struct host_library *library = host_adopt(api, error);
	struct call call;
	int code;

	if (!library)
		return SQLITE_ERROR;
	call_enter(&call, library, __builtin_frame_address(0));
	code = attach(db, error);
	call_leave(&call);
	return code;
}
