/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of SQLite's database files and the frames of its WALs, read from their bytes; the format is
 * https://www.sqlite.org/fileformat2.html. A hook in the host and the command both use it, so it allocates
 * nothing, calls nothing and reads nothing outside of the bytes that it is given, whatever they contain.
 *
 * A page says itself only whether it is a page of a b-tree, and it goes on saying so after it was freed. That
 * a page is an overflow page or a page of the freelist is known from the page that points to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATABASE_HEADER_BYTES 100
#define WAL_HEADER_BYTES 32
#define WAL_FRAME_BYTES 24 /* of a frame, before its page */

/* --- files -------------------------------------------------------------------------------------- */

/* How the pages of a file are laid out. */
struct page_layout {
	uint32_t size;   /* bytes of a page: a power of two from 512 to 65536 */
	uint32_t usable; /* of these, without the bytes that an extension reserves at the end; at least 480 */
};

struct database_header {
	struct page_layout layout;
	uint32_t page_count; /* may be older than the file if is_counted is false */
	bool is_counted;
	bool has_pointer_map; /* auto_vacuum is FULL or INCREMENTAL */
	bool is_wal;
	uint32_t first_trunk; /* of the freelist; 0: it is empty */
	uint32_t free_count;
	uint32_t schema_cookie;
	uint32_t encoding; /* of texts: 1 UTF-8, 2 UTF-16 little-endian, 3 UTF-16 big-endian; 0: no table yet
	                    */
};

/* The beginning of page 1, of DATABASE_HEADER_BYTES or more. False: it is not a database, or encrypted. */
bool btree_page_read_header(const uint8_t *bytes, size_t size, struct database_header *header);

struct wal_header {
	uint32_t page_size, checkpoint, salt[2];
};

/* The beginning of a WAL. False: it is not one. */
bool btree_page_read_wal(const uint8_t *bytes, size_t size, struct wal_header *header);

struct wal_frame {
	uint32_t page, page_count; /* the database's size after the commit; 0: not the last frame of one */
	uint32_t salt[2];          /* another than the WAL's: a frame of an earlier turn of the WAL */
};

/* The header of a frame, of WAL_FRAME_BYTES. False: no page has the number 0, so it is not a frame. */
bool btree_page_read_frame(const uint8_t *bytes, size_t size, struct wal_frame *frame);

/* --- pages of a b-tree ----------------------------------------------------------------------------- */

enum btree_kind {
	BTREE_NONE, /* overflow, freelist, pointer map, the lock-byte page, or not a page */
	BTREE_INTERIOR_INDEX = 2,
	BTREE_INTERIOR_TABLE = 5,
	BTREE_LEAF_INDEX = 10, /* of indexes and of WITHOUT ROWID tables */
	BTREE_LEAF_TABLE = 13,
};

struct btree_page {
	const uint8_t *bytes;
	struct page_layout layout;
	enum btree_kind kind;
	uint32_t cell_count;
	uint32_t cells;      /* offset of the array of their offsets, */
	uint32_t content;    /* of the first one, */
	uint32_t free_block; /* and of the first free block, or 0 */
	uint32_t right;      /* the rightmost child of an interior page, or 0 */
};

/* A page of layout.size bytes. False, with kind BTREE_NONE: its header is not one of a b-tree. */
bool btree_page_read(struct btree_page *page, const uint8_t *bytes, struct page_layout layout,
                     uint32_t number);

static inline bool btree_page_is_interior(const struct btree_page *page)
{
	return page->kind == BTREE_INTERIOR_INDEX || page->kind == BTREE_INTERIOR_TABLE;
}

struct btree_cell {
	uint32_t child;         /* of an interior page: with the keys up to this cell's; or 0 */
	uint32_t overflow;      /* the first page that has the rest of the payload, or 0 */
	int64_t rowid;          /* of a table's page */
	const uint8_t *payload; /* the part on this page; NULL on an interior page of a table */
	uint32_t local;         /* bytes of that part */
	uint64_t size;          /* bytes of the whole payload */
};

/* The cell of that index, below cell_count. False: it does not lie within the page. */
bool btree_page_read_cell(const struct btree_page *page, uint32_t index, struct btree_cell *cell);

/* Whether a cell of a valid page, in which cells do not overlap, has an overflow page. Mostly the array of
 * their offsets alone shows that none has. */
bool btree_page_has_overflow(const struct btree_page *page);

/* The child of that index; the one of index cell_count is the rightmost. 0: none, or damaged. */
uint32_t btree_page_child(const struct btree_page *page, uint32_t index);

/* The pages that a page of a b-tree points to: children and the first pages of overflow chains. */
struct page_links {
	const struct btree_page *page;
	uint32_t next;     /* cell, or cell_count for the rightmost child */
	uint32_t overflow; /* of a cell whose child was given, or 0 */
};

static inline void btree_page_begin_links(struct page_links *links, const struct btree_page *page)
{
	*links = (struct page_links){ .page = page };
}

/* False: there are no more. Damaged cells are passed over. */
bool btree_page_next_link(struct page_links *links, uint32_t *number, bool *is_overflow);

/* --- the schema ------------------------------------------------------------------------------------ */

enum schema_type { SCHEMA_UNKNOWN, SCHEMA_TABLE, SCHEMA_INDEX, SCHEMA_VIEW, SCHEMA_TRIGGER };

struct schema_text {
	const uint8_t *bytes; /* in the database's encoding; NULL: not among the bytes that were given */
	uint32_t size;
};

struct schema_row {
	enum schema_type type;
	struct schema_text name, table;
	uint32_t root;      /* 0: none (a view, a trigger, a virtual table), if root_is_known */
	bool root_is_known; /* false: it comes after the bytes that were given */
	struct schema_text
		sql; /* bytes NULL: not given as a whole, or NULL in the table (an automatic index) */
};

/* The payload of a row of sqlite_schema, or as much of it as is there. False: it is not one. */
bool btree_page_read_schema(const uint8_t *payload, size_t size, struct schema_row *row);

/* --- other pages ------------------------------------------------------------------------------------ */

/* The page at the bytes that SQLite locks, 2^30 and on; it is never read or written. */
static inline bool btree_page_is_lock_byte(uint32_t number, struct page_layout layout)
{
	return number == (1u << 30) / layout.size + 1;
}

/* If the database has a pointer map: the page of it that has the entry for a page, which may be itself. 0: of
 * page 1 and the lock-byte page there is none. */
uint32_t btree_page_map_of(uint32_t number, struct page_layout layout);

enum pointer_type {
	POINTER_ROOT = 1,          /* of a b-tree, its parent is 0 */
	POINTER_FREE = 2,          /* its parent is 0 */
	POINTER_OVERFLOW = 3,      /* the first page of a chain; its parent is the page of the cell */
	POINTER_OVERFLOW_REST = 4, /* its parent is the page before in the chain */
	POINTER_CHILD = 5,         /* of an interior page */
};

struct pointer_entry {
	enum pointer_type type;
	uint32_t parent;
};

/* The entry for `number` on the pointer map's page `map`. False: it is not there, or not one. */
bool btree_page_read_pointer(const uint8_t *bytes, struct page_layout layout, uint32_t map, uint32_t number,
                             struct pointer_entry *entry);

/* The number at the beginning of an overflow page, or of a trunk of the freelist: the next one; 0: none. */
uint32_t btree_page_next(const uint8_t *bytes);

/* How many leaves a trunk of the freelist names, no more than fit. */
uint32_t btree_page_free_count(const uint8_t *bytes, struct page_layout layout);

/* The leaf of that index, below btree_page_free_count(). */
uint32_t btree_page_free_leaf(const uint8_t *bytes, uint32_t index);
