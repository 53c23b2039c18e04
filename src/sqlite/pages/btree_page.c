/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section numbers are those of https://www.sqlite.org/fileformat2.html. Numbers are big-endian there.
 */
#include "sqlite/pages/btree_page.h"

#include <string.h>

#define PAGE_BYTES_MIN 512
#define PAGE_BYTES_MAX 65536
#define USABLE_BYTES_MIN 480
#define POINTER_BYTES 5     /* an entry of the pointer map: type and parent */
#define CELL_BYTES_MIN 4    /* SQLite gives a cell no fewer */
#define FRAGMENTS_MAX 60    /* free bytes in pieces of fewer than four */
#define HEADER_BYTES_LEAF 8 /* of a page of a b-tree */
#define HEADER_BYTES_INTERIOR 12

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return __builtin_bswap32(word);
}

static uint32_t half_at(const uint8_t *bytes)
{
	return (uint32_t)(bytes[0] << 8 | bytes[1]);
}

/* The bytes that are left to read. */
struct rest {
	const uint8_t *at, *end;
};

static size_t size_of(const struct rest *rest)
{
	return (size_t)(rest->end - rest->at);
}

/* A varint of one to nine bytes. False: it does not end. */
static bool read_varint(struct rest *rest, uint64_t *number)
{
	uint64_t read = 0;

	for (int i = 0; i < 9 && rest->at < rest->end; i++) {
		const uint8_t byte = *rest->at++;

		read = i < 8 ? read << 7 | (byte & 127) : read << 8 | byte;
		if (byte < 128 || i == 8) {
			*number = read;
			return true;
		}
	}
	return false;
}

/* --- files: 1.3 and 4.1 -------------------------------------------------------------------------------- */

static bool is_page_size(uint32_t size)
{
	return size >= PAGE_BYTES_MIN && size <= PAGE_BYTES_MAX && !(size & (size - 1));
}

bool btree_page_read_header(const uint8_t *bytes, size_t size, struct database_header *header)
{
	static const uint8_t magic[16] = { 'S', 'Q', 'L', 'i', 't', 'e', ' ', 'f',
		                           'o', 'r', 'm', 'a', 't', ' ', '3', 0 };
	uint32_t page_size;

	if (size < DATABASE_HEADER_BYTES)
		return false;
	for (size_t i = 0; i < sizeof(magic); i++)
		if (bytes[i] != magic[i])
			return false;
	page_size = half_at(bytes + 16);
	if (page_size == 1)
		page_size = PAGE_BYTES_MAX;
	if (!is_page_size(page_size) || page_size - bytes[20] < USABLE_BYTES_MIN)
		return false;
	*header = (struct database_header){
		.layout = { .size = page_size, .usable = page_size - bytes[20] },
		.page_count = word_at(bytes + 28),
		/* The counter of changes, and its value at the last count: SQLite before 3.7.0 did not count.
		 */
		.is_counted = word_at(bytes + 28) && word_at(bytes + 24) == word_at(bytes + 92),
		.has_pointer_map = word_at(bytes + 52) != 0,
		.is_wal = bytes[19] == 2,
		.first_trunk = word_at(bytes + 32),
		.free_count = word_at(bytes + 36),
		.schema_cookie = word_at(bytes + 40),
		.encoding = word_at(bytes + 56),
	};
	return true;
}

bool btree_page_read_wal(const uint8_t *bytes, size_t size, struct wal_header *header)
{
	/* The last bit tells the order of bytes in checksums. */
	if (size < WAL_HEADER_BYTES || (word_at(bytes) & ~1u) != 0x377f0682 || word_at(bytes + 4) != 3007000)
		return false;
	*header = (struct wal_header){
		.page_size = word_at(bytes + 8),
		.checkpoint = word_at(bytes + 12),
		.salt = { word_at(bytes + 16), word_at(bytes + 20) },
	};
	return is_page_size(header->page_size);
}

bool btree_page_read_frame(const uint8_t *bytes, size_t size, struct wal_frame *frame)
{
	if (size < WAL_FRAME_BYTES)
		return false;
	*frame = (struct wal_frame){
		.page = word_at(bytes),
		.page_count = word_at(bytes + 4),
		.salt = { word_at(bytes + 8), word_at(bytes + 12) },
	};
	return frame->page != 0;
}

/* --- pages of a b-tree: 1.6 ------------------------------------------------------------------------------
 */

bool btree_page_read(struct btree_page *page, const uint8_t *bytes, struct page_layout layout,
                     uint32_t number)
{
	const uint32_t begin = number == 1 ? DATABASE_HEADER_BYTES : 0;
	const uint8_t *head = bytes + begin;
	const uint32_t count = half_at(head + 3);
	const bool is_interior = head[0] == BTREE_INTERIOR_INDEX || head[0] == BTREE_INTERIOR_TABLE;
	const uint32_t cells = begin + (is_interior ? HEADER_BYTES_INTERIOR : HEADER_BYTES_LEAF);
	const uint32_t free_block = half_at(head + 1);
	uint32_t content = half_at(head + 5);

	*page = (struct btree_page){ .bytes = bytes, .layout = layout };
	if (!is_interior && head[0] != BTREE_LEAF_INDEX && head[0] != BTREE_LEAF_TABLE)
		return false;
	if (!content)
		content = PAGE_BYTES_MAX;
	/* What the bytes of an overflow page would satisfy by chance only. */
	if (cells + count * (2 + CELL_BYTES_MIN) > layout.usable || content < cells + count * 2 ||
	    content > layout.usable ||
	    (free_block && (free_block < content || free_block + 4 > layout.usable)) ||
	    head[7] > FRAGMENTS_MAX)
		return false;
	page->kind = head[0];
	page->cell_count = count;
	page->cells = cells;
	page->content = content;
	page->free_block = free_block;
	page->right = is_interior ? word_at(head + 8) : 0;
	return true;
}

/* The bytes of a cell and all after it in the page. False: its offset is outside. */
static bool find_cell(const struct btree_page *page, uint32_t index, struct rest *rest)
{
	const uint32_t offset = index < page->cell_count ? half_at(page->bytes + page->cells + 2 * index) : 0;

	if (offset < page->cells + 2 * page->cell_count || offset + CELL_BYTES_MIN > page->layout.usable)
		return false;
	*rest = (struct rest){ page->bytes + offset, page->bytes + page->layout.usable };
	return true;
}

/* 1.6, "Calculations" under "B-tree Cell Format". A larger payload than this has overflow pages. */
static uint32_t local_bytes_most(uint32_t usable, bool is_table)
{
	return is_table ? usable - 35 : (usable - 12) * 64 / 255 - 23;
}

/* How much of a payload is on the page of its cell. */
static uint32_t local_bytes(uint64_t size, uint32_t usable, bool is_table)
{
	const uint32_t least = (usable - 12) * 32 / 255 - 23;
	const uint32_t most = local_bytes_most(usable, is_table);
	uint32_t whole_pages;

	if (size <= most)
		return (uint32_t)size;
	whole_pages = least + (uint32_t)((size - least) % (usable - 4));
	return whole_pages <= most ? whole_pages : least;
}

bool btree_page_read_cell(const struct btree_page *page, uint32_t index, struct btree_cell *cell)
{
	const bool is_table = page->kind == BTREE_INTERIOR_TABLE || page->kind == BTREE_LEAF_TABLE;
	struct rest rest;
	uint64_t rowid = 0;

	*cell = (struct btree_cell){ 0 };
	if (!find_cell(page, index, &rest))
		return false;
	if (btree_page_is_interior(page)) {
		cell->child = word_at(rest.at);
		rest.at += 4;
	}
	if (page->kind != BTREE_INTERIOR_TABLE && !read_varint(&rest, &cell->size))
		return false;
	if (is_table && !read_varint(&rest, &rowid))
		return false;
	cell->rowid = (int64_t)rowid;
	if (page->kind == BTREE_INTERIOR_TABLE)
		return true;
	/* SQLite has no larger ones: 2^31 - 1 at most. */
	if (cell->size > INT32_MAX)
		return false;
	cell->local = local_bytes(cell->size, page->layout.usable, is_table);
	cell->payload = rest.at;
	if (cell->local > size_of(&rest))
		return false;
	rest.at += cell->local;
	if (cell->local == cell->size)
		return true;
	if (size_of(&rest) < 4)
		return false;
	cell->overflow = word_at(rest.at);
	return true;
}

/*
 * A cell with overflow pages keeps more than two 32nds of the page: the least of local_bytes(), the size and
 * the pointer. Such a cell fills the whole 32nd after the one in which it begins. So a cell needs no reading
 * if another one begins in that 32nd, or a free block is there. In a page of small cells that is true for
 * all, and some of them show it, in an order that spreads them over the page.
 */
#define PARTS 32u
#define STRIDE 8u

/* The 32nd in which the cell begins. Its offset is in the upper half of a word, whose lower half is also in
 * the page. */
static uint32_t part_of(const struct btree_page *page, uint32_t index, int bits)
{
	return (word_at(page->bytes + page->cells + 2 * index) >> (16 + bits)) % PARTS;
}

/* A bit for each 32nd from the byte `begin` on, up to the one before `end`, which is more. */
static uint32_t parts_of(uint32_t begin, uint32_t end, int bits)
{
	return (2u << ((end - 1) >> bits)) - (1u << (begin >> bits));
}

static uint32_t parts_of_free_blocks(const struct btree_page *page, int bits)
{
	const uint32_t usable = page->layout.usable;
	uint32_t at = page->free_block, parts = 0;

	while (at && at + 4 <= usable) {
		const uint32_t next = half_at(page->bytes + at), end = at + half_at(page->bytes + at + 2);

		parts |= parts_of(at, end > at && end < usable ? end : usable, bits);
		at = next > at ? next : 0;
	}
	return parts;
}

bool btree_page_has_overflow(const struct btree_page *page)
{
	const uint32_t most = local_bytes_most(page->layout.usable, page->kind == BTREE_LEAF_TABLE);
	const uint32_t child = page->kind == BTREE_INTERIOR_INDEX ? 4 : 0;
	const int bits = __builtin_ctz(page->layout.size / PARTS);
	/* Before the first cell there is none. */
	uint32_t parts = parts_of(0, page->content, bits) | parts_of_free_blocks(page, bits);

	if (page->kind == BTREE_INTERIOR_TABLE)
		return false;
	for (uint32_t first = 0; first < STRIDE && parts != UINT32_MAX; first++)
		for (uint32_t i = first; i < page->cell_count; i += STRIDE)
			parts |= 1u << part_of(page, i, bits);
	for (uint32_t i = 0; i < page->cell_count && parts != UINT32_MAX; i++) {
		const uint32_t next = part_of(page, i, bits) + 1;
		struct rest rest;
		uint64_t size;

		if (next >= PARTS || parts >> next & 1 || !find_cell(page, i, &rest) ||
		    (rest.at += child) >= rest.end)
			continue;
		/* Mostly one byte. */
		size = *rest.at;
		if ((size >= 128 && !read_varint(&rest, &size)) || size > most)
			return true;
	}
	return false;
}

uint32_t btree_page_child(const struct btree_page *page, uint32_t index)
{
	struct rest rest;

	if (!btree_page_is_interior(page))
		return 0;
	if (index == page->cell_count)
		return page->right;
	return find_cell(page, index, &rest) ? word_at(rest.at) : 0;
}

bool btree_page_next_link(struct page_links *links, uint32_t *number, bool *is_overflow)
{
	const struct btree_page *page = links->page;
	struct btree_cell cell;

	while (!links->overflow && links->next < page->cell_count &&
	       page->kind != BTREE_INTERIOR_TABLE) { /* which has no payload */
		if (!btree_page_read_cell(page, links->next++, &cell))
			continue;
		links->overflow = cell.overflow;
		if (cell.child) {
			*number = cell.child;
			*is_overflow = false;
			return true;
		}
	}
	if (links->overflow) {
		*number = links->overflow;
		*is_overflow = true;
		links->overflow = 0;
		return true;
	}
	while (links->next <= page->cell_count && btree_page_is_interior(page)) {
		*number = btree_page_child(page, links->next++);
		*is_overflow = false;
		if (*number)
			return true;
	}
	return false;
}

/* --- the schema: 2.1 and 2.6 -------------------------------------------------------------------------------
 */

enum { COLUMN_TYPE, COLUMN_NAME, COLUMN_TABLE, COLUMN_ROOT, COLUMN_SQL, COLUMNS };

static uint32_t bytes_of(uint64_t serial)
{
	static const uint8_t sizes[] = { 0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0 };

	if (serial < sizeof(sizes))
		return sizes[serial];
	return serial < INT32_MAX ? (uint32_t)(serial - 12) / 2 : INT32_MAX;
}

static uint32_t number_at(const uint8_t *bytes, size_t size)
{
	uint32_t number = 0;

	for (size_t i = 0; i < size; i++)
		number = number << 8 | bytes[i];
	return number;
}

static bool is_text(uint64_t serial)
{
	return serial >= 13 && serial % 2;
}

/* The word of the column `type`, in UTF-8 or UTF-16. */
static enum schema_type type_of(struct schema_text text)
{
	static const char *const words[] = { [SCHEMA_TABLE] = "table",
		                             [SCHEMA_INDEX] = "index",
		                             [SCHEMA_VIEW] = "view",
		                             [SCHEMA_TRIGGER] = "trigger" };

	for (size_t i = SCHEMA_TABLE; text.bytes && i < sizeof(words) / sizeof(words[0]); i++) {
		const char *word = words[i];

		for (uint32_t at = 0; at < text.size; at++)
			if (text.bytes[at] && (!*word || text.bytes[at] != (uint8_t)*word++))
				goto other;
		if (!*word)
			return (enum schema_type)i;
other:;
	}
	return SCHEMA_UNKNOWN;
}

bool btree_page_read_schema(const uint8_t *payload, size_t size, struct schema_row *row)
{
	struct rest head = { payload, payload + size }, body;
	uint64_t head_size, serials[COLUMNS];
	struct schema_text texts[COLUMNS] = { 0 };

	*row = (struct schema_row){ 0 };
	if (!read_varint(&head, &head_size) || head_size > size || payload + head_size < head.at)
		return false;
	head.end = payload + head_size;
	body = (struct rest){ head.end, payload + size };
	for (size_t i = 0; i < COLUMNS; i++)
		if (!read_varint(&head, &serials[i]))
			return false;
	if (!is_text(serials[COLUMN_TYPE]) || !is_text(serials[COLUMN_NAME]) ||
	    !is_text(serials[COLUMN_TABLE]))
		return false;
	for (size_t i = 0; i < COLUMNS && bytes_of(serials[i]) <= size_of(&body); i++) {
		texts[i] = (struct schema_text){ body.at, bytes_of(serials[i]) };
		body.at += texts[i].size;
	}
	row->type = type_of(texts[COLUMN_TYPE]);
	row->name = texts[COLUMN_NAME];
	row->table = texts[COLUMN_TABLE];
	if (texts[COLUMN_ROOT].bytes) {
		row->root_is_known = true;
		/* 8 and 9 are the numbers 0 and 1; a page's number has four bytes at most, so a longer one is
		 * damaged. */
		row->root = serials[COLUMN_ROOT] == 9 ? 1
		            : serials[COLUMN_ROOT] <= 5
		                    ? number_at(texts[COLUMN_ROOT].bytes, texts[COLUMN_ROOT].size)
		                    : 0;
	}
	if (is_text(serials[COLUMN_SQL]))
		row->sql = texts[COLUMN_SQL];
	return row->type != SCHEMA_UNKNOWN;
}

/* --- other pages: 1.5, 1.7 and 1.8
 * -------------------------------------------------------------------------- */

uint32_t btree_page_map_of(uint32_t number, struct page_layout layout)
{
	const uint32_t group = layout.usable / POINTER_BYTES + 1; /* a page of the map and its entries */
	uint32_t map;

	if (number < 2 || btree_page_is_lock_byte(number, layout))
		return 0;
	map = (number - 2) / group * group + 2;
	return btree_page_is_lock_byte(map, layout) ? map + 1 : map;
}

bool btree_page_read_pointer(const uint8_t *bytes, struct page_layout layout, uint32_t map, uint32_t number,
                             struct pointer_entry *entry)
{
	const uint32_t at = (number - map - 1) * POINTER_BYTES;

	if (number <= map || number - map > layout.usable / POINTER_BYTES)
		return false;
	*entry = (struct pointer_entry){ (enum pointer_type)bytes[at], word_at(bytes + at + 1) };
	return entry->type >= POINTER_ROOT && entry->type <= POINTER_CHILD;
}

uint32_t btree_page_next(const uint8_t *bytes)
{
	return word_at(bytes);
}

uint32_t btree_page_free_count(const uint8_t *bytes, struct page_layout layout)
{
	const uint32_t count = word_at(bytes + 4), room = layout.usable / 4 - 2;

	return count < room ? count : room;
}

uint32_t btree_page_free_leaf(const uint8_t *bytes, uint32_t index)
{
	return word_at(bytes + 8 + 4 * (size_t)index);
}
