/* SPDX-License-Identifier: Apache-2.0 */
/*
 * https://www.sqlite.org/fileformat2.html describes the format. A page of a table's tree begins with its
 * kind. An inner page (its "interior" page) has children between keys, a leaf has rows. Numbers are
 * big-endian.
 *
 * The file may come from a stranger, so nothing is read outside of its page, and a tree has no more pages
 * than the file.
 */
#include "cmd/file/table_pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/file/trace_file.h"

#define LEVELS 20 /* SQLite's own limit */
#define LEAF 0x0d
#define INNER 0x05
#define RECORD_COLUMNS_MAX 100
#define NOWHERE TABLE_PAGES_COLUMNS_MAX

struct page {
	uint8_t *bytes;
	const uint8_t *cells; /* their places in the page, two bytes each */
	size_t cell_count;
	size_t next; /* child of an inner page */
};

struct tree {
	sqlite3_file *file;
	size_t page_size, usable; /* bytes */
	int64_t pages_left;
	struct page path[LEVELS];
	uint8_t places[RECORD_COLUMNS_MAX]; /* of a record's columns in a row, or NOWHERE */
	size_t column_count;                /* of a record that are read */
	size_t rowid_place;
	int64_t row[TABLE_PAGES_COLUMNS_MAX + 1]; /* and NOWHERE */
	int64_t first, last;
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

/* The lower seven bits of each of eight bytes. */
static uint64_t sevens_at(const uint8_t *bytes)
{
	uint64_t word = word_at(bytes) & 0x7f7f7f7f7f7f7f7f;

	word = (word & 0x7f007f007f007f00) >> 1 | (word & 0x007f007f007f007f);
	word = (word & 0x3fff00003fff0000) >> 2 | (word & 0x00003fff00003fff);
	return (word & 0x0fffffff00000000) >> 4 | (word & 0x000000000fffffff);
}

/* A number of up to nine bytes, seven bits in each but the ninth. False: it does not end before `end`. */
static inline bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
	uint64_t read = 0;

	if (*at < end && **at < 128) {
		*number = *(*at)++;
		return true;
	}
	if (end - *at > 8 && all_continue(*at)) { /* as the time of a sample */
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

/* Of a value, by the type that the record gives it. */
static const struct type {
	uint8_t size, shift, one;
	int64_t mask;
} types[] = {
	{ 0, 0, 0, 0 },   { 1, 56, 0, -1 }, { 2, 48, 0, -1 }, { 3, 40, 0, -1 }, { 4, 32, 0, -1 },
	{ 6, 16, 0, -1 }, { 8, 0, 0, -1 },  { 0, 0, 0, -1 },  { 0, 0, 0, 0 },   { 0, 0, 1, 0 },
};
enum { TYPE_REAL = 7, TYPES = sizeof(types) / sizeof(types[0]) };

/* A record has so many bytes at most that are read beyond its end, which a page has room for. */
#define BEYOND (RECORD_COLUMNS_MAX * sizeof(uint64_t))

/* A record: the size of its head and the types of its columns, then their values. */
static int read_record(struct tree *tree, int64_t rowid, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *const record = at;
	uint64_t head = 0;

	if (!read_varint(&at, end, &head) || head > (uint64_t)(end - record))
		return SQLITE_CORRUPT;
	const uint8_t *value = record + head;
	const uint8_t *const head_end = value;
	const uint8_t *const places = tree->places;
	int64_t *const row = tree->row;
	for (size_t i = 0, count = tree->column_count; i < count; i++) {
		const uint8_t number = at < head_end ? *at++ : 0; /* a row of an older version has fewer */

		if (number >= TYPES || number == TYPE_REAL)
			return SQLITE_CORRUPT;
		const struct type *const type = &types[number];
		row[places[i]] = ((int64_t)word_at(value) >> type->shift & type->mask) | type->one;
		value += type->size;
	}
	if (value > end)
		return SQLITE_CORRUPT;
	tree->row[tree->rowid_place] = rowid;
	return tree->take(tree->context, tree->row);
}

static int read_leaf(struct tree *tree, const struct page *page)
{
	const uint8_t *const page_end = page->bytes + tree->usable;
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < page->cell_count; i++) {
		const uint8_t *at = page->bytes + (page->cells[2 * i] << 8 | page->cells[2 * i + 1]);
		uint64_t size = 0, rowid = 0;

		/* A record of integers fits into any page. */
		if (at >= page_end || !read_varint(&at, page_end, &size) ||
		    !read_varint(&at, page_end, &rowid) || size > (uint64_t)(page_end - at))
			return SQLITE_CORRUPT;
		if ((int64_t)rowid > tree->last)
			return SQLITE_DONE;
		if ((int64_t)rowid >= tree->first)
			code = read_record(tree, (int64_t)rowid, at, at + size);
	}
	return code;
}

/* --- pages ------------------------------------------------------------------------------------------ */

static int read_page(struct tree *tree, struct page *page, uint32_t number)
{
	if (number < 2 || tree->pages_left-- <= 0)
		return SQLITE_CORRUPT;
	if (!page->bytes && !(page->bytes = malloc(tree->page_size + BEYOND)))
		return SQLITE_NOMEM;
	const int code = tree->file->pMethods->xRead(tree->file, page->bytes, (int)tree->page_size,
	                                             (int64_t)(number - 1) * (int64_t)tree->page_size);
	if (code)
		return code == SQLITE_IOERR_SHORT_READ ? SQLITE_CORRUPT : code;
	page->cells = page->bytes + (page->bytes[0] == INNER ? 12 : 8);
	page->cell_count = number_at(page->bytes + 3, 2);
	page->next = 0;
	return (page->bytes[0] != INNER && page->bytes[0] != LEAF) ||
	                       page->cells + 2 * page->cell_count > page->bytes + tree->usable
	               ? SQLITE_CORRUPT
	               : SQLITE_OK;
}

/* The next child that may have one of the rows. 0: there is none. */
static int find_child(const struct tree *tree, struct page *page, uint32_t *child)
{
	for (*child = 0; !*child && page->next <= page->cell_count; page->next++) {
		const uint8_t *at = page->next == page->cell_count
		                            ? page->bytes + 8
		                            : page->bytes + number_at(&page->cells[2 * page->next], 2);
		const uint8_t *const end = page->bytes + tree->usable;
		uint64_t key = 0; /* its greatest */

		if (at + 4 > end)
			return SQLITE_CORRUPT;
		const uint32_t number = number_at(at, 4);
		at += 4;
		if (page->next < page->cell_count && !read_varint(&at, end, &key))
			return SQLITE_CORRUPT;
		if (page->next == page->cell_count || (int64_t)key >= tree->first)
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

uint32_t table_pages_root(sqlite3 *db, const char *table)
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

static size_t find_place(const char *const *columns, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (columns[i] && name && strcmp(columns[i], name) == 0)
			return i;
	return NOWHERE;
}

/* Finds the place of each column in the row that `take` gets. The rowid is not in the record: its column
 * there is NULL. */
static int find_places(sqlite3 *db, const char *table, struct tree *tree, const char *const *columns,
                       size_t count)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT cid, name, pk FROM pragma_table_info(?1, 'main')", -1, &row,
	                              NULL);

	memset(tree->places, NOWHERE, sizeof(tree->places));
	tree->rowid_place = NOWHERE;
	sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const size_t column = (size_t)sqlite3_column_int(row, 0);
		const size_t place = find_place(columns, count, (const char *)sqlite3_column_text(row, 1));

		code = SQLITE_OK;
		if (sqlite3_column_int(row, 2)) {
			tree->rowid_place = place;
		} else if (place != NOWHERE && column < RECORD_COLUMNS_MAX) {
			tree->places[column] = (uint8_t)place;
			tree->column_count = column + 1;
		}
	}
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The sizes are in the file's first bytes. */
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

int table_pages_each(sqlite3 *db, const char *table, const char *const *columns, size_t count, int64_t first,
                     int64_t last, int (*take)(void *context, const int64_t *row), void *context)
{
	struct tree tree = { .first = first, .last = last, .take = take, .context = context };
	const uint32_t root = table_pages_root(db, table);
	int code = read_sizes(db, &tree);

	if (!code)
		code = find_places(db, table, &tree, columns, count);
	if (!code)
		code = read_tree(&tree, root);
	for (size_t i = 0; i < LEVELS; i++)
		free(tree.path[i].bytes);
	return code;
}
