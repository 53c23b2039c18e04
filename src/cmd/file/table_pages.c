/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL functions read the rows, so that the connection gets the message of an error. An aggregate function,
 * because sqlite3_step() and a call for each column of a row take twice the time.
 *
 * https://www.sqlite.org/fileformat2.html describes the format. A page of a table's tree begins with its
 * kind. An inner page (its "interior" page) has children between keys, a leaf has rows. Numbers are
 * big-endian.
 *
 * The file may come from a stranger, so nothing outside of a page is read, and a tree has at most as many
 * pages as the file.
 */
#include "cmd/file/table_pages.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "cmd/file/trace_file.h"

#define LEVELS 20 /* SQLite's own limit */
#define LEAF 0x0d
#define INNER 0x05
#define RECORD_COLUMNS_MAX 100
#define NOWHERE TABLE_PAGES_COLUMNS_MAX

struct page {
	uint8_t *bytes;
	const uint8_t *cells; /* their offsets in the page, two bytes each */
	size_t cell_count;
	size_t next; /* the next child of an inner page */
};

struct tree {
	sqlite3_file *file;
	size_t page_size, usable; /* bytes */
	int64_t pages_left;
	struct page path[LEVELS];
	uint8_t *whole;                      /* a record that is on more than one page */
	uint8_t places[RECORD_COLUMNS_MAX];  /* index in the row for each column of a record, or NOWHERE */
	uint8_t missing[RECORD_COLUMNS_MAX]; /* the columns' types if an older version wrote the row */
	size_t column_count;                 /* columns of a record that are read */
	const struct table_rows *rows;
	int64_t row[TABLE_PAGES_COLUMNS_MAX + 1]; /* the last one is NOWHERE */
	int (*take)(void *context, const int64_t *row);
	void *context;
};

static uint32_t number_at(const uint8_t *bytes, size_t size)
{
	uint32_t number = 0;

	for (size_t i = 0; i < size; i++)
		number = number << 8 | bytes[i];
	return number;
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return __builtin_bswap64(word);
}

/* Whether the top bit of all eight bytes is set: the varint is nine bytes long. */
static bool all_continue(const uint8_t *bytes)
{
	return !(~word_at(bytes) & 0x8080808080808080);
}

/* The lower seven bits of each of the eight bytes. */
static uint64_t sevens_at(const uint8_t *bytes)
{
	uint64_t word = word_at(bytes) & 0x7f7f7f7f7f7f7f7f;

	word = (word & 0x7f007f007f007f00) >> 1 | (word & 0x007f007f007f007f);
	word = (word & 0x3fff00003fff0000) >> 2 | (word & 0x00003fff00003fff);
	return (word & 0x0fffffff00000000) >> 4 | (word & 0x000000000fffffff);
}

/* Reads a number of up to nine bytes, with seven bits in each but the ninth. False: it does not end before
 * `end`. */
static inline bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
	uint64_t read = 0;

	if (*at < end && **at < 128) {
		*number = *(*at)++;
		return true;
	}
	if (end - *at > 8 && all_continue(*at)) { /* like the time of a sample */
		*number = sevens_at(*at) << 8 | (*at)[8];
		*at += 9;
		return true;
	}
	for (int i = 0; i < 9 && *at < end; i++) {
		const uint8_t byte = *(*at)++;

		read = i < 8 ? read << 7 | (byte & 127) : read << 8 | byte;
		if (byte < 128 || i == 8) {
			*number = read;
			return true;
		}
	}
	return false;
}

/* --- rows ------------------------------------------------------------------------------------------- */

/* How a value is read, by its type in the record. */
static const struct type {
	uint8_t size, shift;
	int64_t mask, other;
} types[] = {
	{ 0, 0, 0, TABLE_PAGES_NULL },
	{ 1, 56, -1, 0 },
	{ 2, 48, -1, 0 },
	{ 3, 40, -1, 0 },
	{ 4, 32, -1, 0 },
	{ 6, 16, -1, 0 },
	{ 8, 0, -1, 0 },
	{ 8, 0, 0, 0 }, /* see integer_at() */
	{ 0, 0, 0, 0 },
	{ 0, 0, 0, 1 },
};
enum {
	TYPE_NULL = 0,
	TYPE_REAL = 7,
	TYPE_ZERO = 8,
	TYPES = sizeof(types) / sizeof(types[0]),
	TYPE_TEXT = 12
};

/* A value begins in its record, so at most this many bytes beyond the end are read; a page has room for
 * them. */
#define BEYOND sizeof(uint64_t)

/* A REAL as an integer, as SQLite converts it. NaN: SQLite treats it as NULL. */
static int64_t integer_at(const uint8_t *value)
{
	const uint64_t word = word_at(value);
	double real;

	memcpy(&real, &word, sizeof(real));
	if (isnan(real))
		return TABLE_PAGES_NULL;
	return real >= 0x1p63 ? INT64_MAX : real < -0x1p63 ? INT64_MIN : (int64_t)real;
}

/* A record: the size of its head and the types of its columns, then their values. */
static int read_record(struct tree *tree, int64_t rowid, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *const record = at;
	uint64_t head = 0;

	if (!read_varint(&at, end, &head) || head > (uint64_t)(end - record))
		return SQLITE_CORRUPT;
	const uint8_t *value = record + head;
	const uint8_t *const head_end = value;
	int64_t *const row = tree->row;
	for (size_t i = 0, count = tree->column_count; i < count; i++) {
		uint64_t number = tree->missing[i];

		if (at < head_end && !read_varint(&at, head_end, &number))
			return SQLITE_CORRUPT;
		if (number >= TYPE_TEXT) {
			const uint64_t size = (number - TYPE_TEXT) / 2;

			if (size > (uint64_t)(end - value))
				return SQLITE_CORRUPT;
			row[tree->places[i]] = 0;
			value += size;
			continue;
		}
		if (number >= TYPES)
			return SQLITE_CORRUPT;
		const struct type *const type = &types[number];
		row[tree->places[i]] = ((int64_t)word_at(value) >> type->shift & type->mask) | type->other;
		if (number == TYPE_REAL)
			row[tree->places[i]] = integer_at(value);
		value += type->size;
		if (value > end)
			return SQLITE_CORRUPT;
	}
	row[0] = rowid;
	return tree->take(tree->context, row);
}

/* Whether a wanted row is between the first and the last. */
static inline bool is_wanted(const struct table_rows *rows, int64_t rowid)
{
	return !rows->ids ||
	       search_number(rows->ids, sizeof(*rows->ids), rows->id_count, rowid) < rows->id_count;
}

static int read_bytes(struct tree *tree, void *bytes, uint32_t page)
{
	const int code =
		page < 1 || tree->pages_left-- <= 0
			? SQLITE_CORRUPT
			: tree->file->pMethods->xRead(tree->file, bytes, (int)tree->page_size,
	                                              (int64_t)(page - 1) * (int64_t)tree->page_size);

	return code == SQLITE_IOERR_SHORT_READ ? SQLITE_CORRUPT : code;
}

/* If a record is too long for a page, its first bytes are followed by the number of an overflow page. Such a
 * page begins with the number of the next one. */
static int read_long_record(struct tree *tree, int64_t rowid, const uint8_t *at, const uint8_t *page_end,
                            uint64_t size)
{
	const size_t least = (tree->usable - 12) * 32 / 255 - 23, each = tree->usable - 4;
	const size_t fitting = least + (size_t)(size - least) % each;
	size_t have = fitting <= tree->usable - 35 ? fitting : least;
	uint8_t *page = malloc(tree->page_size), *whole = NULL;
	int code = page ? SQLITE_OK : SQLITE_NOMEM;

	if (size / each > (uint64_t)tree->pages_left || have + 4 > (size_t)(page_end - at))
		code = SQLITE_CORRUPT;
	if (!code && !(whole = realloc(tree->whole, size + BEYOND)))
		code = SQLITE_NOMEM;
	tree->whole = whole ? whole : tree->whole;
	if (!code)
		memcpy(whole, at, have);
	for (uint32_t next = number_at(at + (code ? 0 : have), 4); !code && have < size;
	     next = number_at(page, 4)) {
		const size_t more = size - have < each ? size - have : each;

		if (!(code = read_bytes(tree, page, next)))
			memcpy(whole + have, page + 4, more);
		have += more;
	}
	free(page);
	return code ? code : read_record(tree, rowid, whole, whole + size);
}

static int read_leaf(struct tree *tree, const struct page *page)
{
	const uint8_t *const page_end = page->bytes + tree->usable;
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < page->cell_count; i++) {
		const uint8_t *at = page->bytes + (page->cells[2 * i] << 8 | page->cells[2 * i + 1]);
		uint64_t size = 0, rowid = 0;

		if (at >= page_end || !read_varint(&at, page_end, &size) ||
		    !read_varint(&at, page_end, &rowid))
			return SQLITE_CORRUPT;
		if ((int64_t)rowid > tree->rows->last)
			return SQLITE_DONE;
		if ((int64_t)rowid < tree->rows->first || !is_wanted(tree->rows, (int64_t)rowid))
			continue;
		if (size > tree->usable - 35)
			code = read_long_record(tree, (int64_t)rowid, at, page_end, size);
		else
			code = size > (uint64_t)(page_end - at)
			               ? SQLITE_CORRUPT
			               : read_record(tree, (int64_t)rowid, at, at + size);
	}
	return code;
}

/* --- pages ------------------------------------------------------------------------------------------ */

static int read_page(struct tree *tree, struct page *page, uint32_t number)
{
	if (number < 2)
		return SQLITE_CORRUPT;
	if (!page->bytes && !(page->bytes = malloc(tree->page_size + BEYOND)))
		return SQLITE_NOMEM;
	const int code = read_bytes(tree, page->bytes, number);
	if (code)
		return code;
	page->cells = page->bytes + (page->bytes[0] == INNER ? 12 : 8);
	page->cell_count = number_at(page->bytes + 3, 2);
	page->next = 0;
	return (page->bytes[0] != INNER && page->bytes[0] != LEAF) ||
	                       page->cells + 2 * page->cell_count > page->bytes + tree->usable
	               ? SQLITE_CORRUPT
	               : SQLITE_OK;
}

/* The next child that may contain a wanted row. 0: none. */
static int find_child(const struct tree *tree, struct page *page, uint32_t *child)
{
	for (*child = 0; !*child && page->next <= page->cell_count; page->next++) {
		const uint8_t *at = page->next == page->cell_count
		                            ? page->bytes + 8
		                            : page->bytes + number_at(&page->cells[2 * page->next], 2);
		const uint8_t *const end = page->bytes + tree->usable;
		uint64_t key = 0; /* the child's greatest key */

		if (at + 4 > end)
			return SQLITE_CORRUPT;
		const uint32_t number = number_at(at, 4);
		at += 4;
		if (page->next < page->cell_count && !read_varint(&at, end, &key))
			return SQLITE_CORRUPT;
		if (page->next == page->cell_count || (int64_t)key >= tree->rows->first)
			*child = number;
	}
	return SQLITE_OK;
}

static int read_tree(struct tree *tree, uint32_t root)
{
	int code = read_page(tree, &tree->path[0], root);

	for (size_t depth = 1; !code && depth;) {
		struct page *page = &tree->path[depth - 1];
		uint32_t child = 0;

		if (page->bytes[0] == LEAF)
			code = read_leaf(tree, page);
		else
			code = find_child(tree, page, &child);
		if (!code && child)
			code = depth < LEVELS ? read_page(tree, &tree->path[depth++], child) : SQLITE_CORRUPT;
		else
			depth--;
	}
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* --- the table -------------------------------------------------------------------------------------- */

/* The number of the table's first page. 0: its pages cannot be read. */
static uint32_t find_root(sqlite3 *db, const char *table)
{
	sqlite3_stmt *row = NULL;
	uint32_t root = 0;

	if (trace_file_is_immutable(db) &&
	    !sqlite3_prepare_v2(db,
	                        "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?1"
	                        " AND NOT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name = ?1)",
	                        -1, &row, NULL)) {
		sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
		if (sqlite3_step(row) == SQLITE_ROW)
			root = (uint32_t)sqlite3_column_int64(row, 0);
	}
	sqlite3_finalize(row);
	return root;
}

static size_t find_place(const struct table_rows *rows, const char *name)
{
	for (size_t i = 1; i < rows->count; i++)
		if (rows->columns[i] && name && strcmp(rows->columns[i], name) == 0)
			return i;
	return NOWHERE;
}

/* Finds the index of each column in the row for `take`. */
static int find_places(sqlite3 *db, struct tree *tree)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT cid, name, \"notnull\" FROM pragma_table_info(?1, 'main')",
	                              -1, &row, NULL);

	sqlite3_bind_text(row, 1, tree->rows->table, -1, SQLITE_STATIC);
	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const size_t column = (size_t)sqlite3_column_int(row, 0);
		const size_t place = find_place(tree->rows, (const char *)sqlite3_column_text(row, 1));

		code = SQLITE_OK;
		if (column >= RECORD_COLUMNS_MAX)
			continue;
		tree->places[column] = (uint8_t)place;
		tree->missing[column] = sqlite3_column_int(row, 2) ? TYPE_ZERO : TYPE_NULL;
		if (place != NOWHERE)
			tree->column_count = column + 1;
	}
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The file's first bytes contain the sizes. */
static int read_sizes(sqlite3 *db, struct tree *tree)
{
	uint8_t head[100];
	sqlite3_int64 size = 0;
	int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&tree->file);

	if (!code)
		code = tree->file->pMethods->xRead(tree->file, head, sizeof(head), 0);
	if (!code)
		code = tree->file->pMethods->xFileSize(tree->file, &size);
	if (code)
		return code;
	tree->page_size = number_at(&head[16], 2);
	tree->page_size = tree->page_size == 1 ? 65536 : tree->page_size;
	tree->usable = tree->page_size - head[20];
	tree->pages_left = tree->page_size ? size / (int64_t)tree->page_size : 0;
	return tree->page_size < 512 ? SQLITE_CORRUPT : SQLITE_OK;
}

static int read_pages(sqlite3 *db, struct tree *tree)
{
	int code = read_sizes(db, tree);

	if (!code)
		code = find_places(db, tree);
	if (!code)
		code = read_tree(tree, find_root(db, tree->rows->table));
	for (size_t i = 0; i < LEVELS; i++)
		free(tree->path[i].bytes);
	free(tree->whole);
	return code;
}

/* --- the functions ---------------------------------------------------------------------------------- */

#define POINTER "table_pages"

static void set_result(sqlite3_context *context, int code)
{
	if (code == SQLITE_NOMEM)
		sqlite3_result_error_nomem(context);
	else if (code == SQLITE_ERROR)
		sqlite3_result_error(context, sqlite3_errmsg(sqlite3_context_db_handle(context)), -1);
	else if (code)
		sqlite3_result_error_code(context, code);
}

/* An aggregate function of the columns to be read. */
static void take_row(sqlite3_context *context, int argc, sqlite3_value **values)
{
	struct tree *tree = sqlite3_value_pointer(values[0], POINTER);
	int code = tree ? SQLITE_OK : SQLITE_MISUSE;

	if (!code && !is_wanted(tree->rows, sqlite3_value_int64(values[1])))
		return;
	for (size_t i = 0, next = 1; !code && i < tree->rows->count && next < (size_t)argc; i++)
		if (tree->rows->columns[i]) {
			sqlite3_value *value = values[next++];

			tree->row[i] = sqlite3_value_type(value) == SQLITE_NULL ? TABLE_PAGES_NULL
			                                                        : sqlite3_value_int64(value);
		}
	set_result(context, code ? code : tree->take(tree->context, tree->row));
}

static void end_rows(sqlite3_context *context)
{
	sqlite3_result_null(context);
}

static void take_pages(sqlite3_context *context, int argc, sqlite3_value **values)
{
	struct tree *tree = sqlite3_value_pointer(values[0], POINTER);

	(void)argc;
	set_result(context, tree ? read_pages(sqlite3_context_db_handle(context), tree) : SQLITE_MISUSE);
}

int table_pages_add(sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
	const int code =
		sqlite3_create_function_v2(db, "takeRow", -1, flags, NULL, NULL, take_row, end_rows, NULL);

	return code ? code
	            : sqlite3_create_function_v2(db, "takePages", 1, flags, NULL, take_pages, NULL, NULL,
	                                         NULL);
}

int table_pages_each(sqlite3 *db, const struct table_rows *rows,
                     int (*take)(void *context, const int64_t *row), void *context)
{
	struct tree tree = { .rows = rows, .take = take, .context = context };
	const bool has_pages = find_root(db, rows->table);
	sqlite3_str *text = sqlite3_str_new(db);
	sqlite3_stmt *row = NULL;

	sqlite3_str_appendall(text, has_pages ? "SELECT takePages(?3" : "SELECT takeRow(?3");
	for (size_t i = 0; !has_pages && i < rows->count; i++)
		if (rows->columns[i])
			sqlite3_str_appendf(text, ", %s", rows->columns[i]);
	sqlite3_str_appendall(text, ")");
	if (!has_pages)
		sqlite3_str_appendf(text, " FROM %s WHERE %s BETWEEN ?1 AND ?2", rows->table,
		                    rows->columns[0]);
	char *sql = sqlite3_str_finish(text);
	int code = sql ? sqlite3_prepare_v2(db, sql, -1, &row, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	if (!code) {
		sqlite3_bind_int64(row, 1, rows->first);
		sqlite3_bind_int64(row, 2, rows->last);
		code = sqlite3_bind_pointer(row, 3, &tree, POINTER, NULL);
	}
	if (!code && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = SQLITE_OK;
	sqlite3_finalize(row);
	return code;
}
