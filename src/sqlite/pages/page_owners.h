/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which b-tree each page of a database belongs to, as the pages show that the host reads and writes.
 *
 * The rows of sqlite_schema name the root pages, an interior page names its children, a cell the first page
 * of its overflow chain, and an overflow page the next one. A page whose own b-tree is not known yet is noted
 * as the parent of the pages that it names, so that the order in which pages are written does not matter. A
 * page that is freed is on the freelist when the trunk that names it is written; when it is used again, the
 * page that points to it is written, too.
 *
 * A page is parsed when it is written, and when it is read for the first time. A leaf that is read shows no
 * more than the overflow pages of its rows, so after many leaves without any, further ones are not parsed
 * until a page is read whose b-tree is not known. Pages that another process has changed may show their old
 * b-tree until the connection reads their parent again; a page of an unknown b-tree makes all interior pages
 * count as not read yet, once a second at most, and so does a page 1 that tells of another schema.
 */
#pragma once

#include <stdbool.h>
#include <sqlite3ext.h>
#include <stdint.h>

#include "sqlite/pages/btree_page.h"

/* Further pages and b-trees are not known. */
#define PAGES_IN_CHUNK 4096u
#define PAGE_CHUNKS 4096u
#define BTREES_IN_BLOCK 32u
#define BTREE_BLOCKS 128u

/*
 * A page's word: a value of 24 bits, which is the number of its b-tree, or of the page that names it; its
 * class; whether the value is a page; whether the process has written it; and the generation in which it was
 * parsed, 0: never. Words are changed without a lock: a change that is lost is a page that is parsed again.
 */
#define VALUE_MASK 0xffffffu
#define CLASS_SHIFT 24
#define CLASS_MASK (3u << CLASS_SHIFT)
#define IS_LINK (1u << 26)
#define IS_WRITTEN (1u << 27)
#define GENERATION_SHIFT 28
#define GENERATIONS 16u
#define OWNER_MASK (VALUE_MASK | CLASS_MASK | IS_LINK)

#define BTREE_NAME_BYTES 120 /* longer names are cut */

struct page_btree {
	uint32_t root;        /* 0: of a virtual table */
	uint32_t replaced_by; /* atomic; the b-tree that has its root page now; 0: none */
	bool is_index, is_virtual;
	bool has_type, is_without_rowid; /* atomic: its root page was seen, and which kind it is */
	uint8_t name_size, table_size;
	char name[BTREE_NAME_BYTES], table[BTREE_NAME_BYTES];
};

/* Of a database that is open in this process. */
struct page_owners {
	uint64_t layout; /* atomic, as all below; of page_owners_layout() */
	bool has_head;   /* page 1 was seen; else the layout is that of nearly all databases */
	bool has_pointer_map;
	uint32_t encoding;
	uint32_t schema_cookie; /* of the page 1 that was seen last */
	uint32_t pages;         /* the greatest number of a page that was seen, or so many as page 1 counts */
	uint32_t generation;    /* 1 .. GENERATIONS - 1: pages that were parsed in another one are not */
	uint64_t generation_ns;
	uint32_t leaves;      /* so many leaves are parsed when they are read, to find overflow pages */
	uint32_t btree_count; /* from 1 on */
	struct page_btree *btrees[BTREE_BLOCKS];
	uint32_t *chunks[PAGE_CHUNKS]; /* a word for each page */
};

/* Changes whenever a page's word stands for another b-tree than before, the type of a b-tree's pages is
 * learned, or a file of pages is closed. Atomic. */
extern uint32_t page_owners_version __attribute__((visibility("hidden")));

static inline void page_owners_change(void)
{
	/* Release: with the change. */
	__atomic_fetch_add(&page_owners_version, 1, __ATOMIC_RELEASE);
}

/* Size 0: not known yet, or encrypted. Read as a whole, because another thread may see page 1 meanwhile. */
static inline struct page_layout page_owners_layout(const struct page_owners *owners)
{
	const uint64_t layout = __atomic_load_n(&owners->layout, __ATOMIC_RELAXED);

	return (struct page_layout){ .size = (uint32_t)layout, .usable = (uint32_t)(layout >> 32) };
}

/* Pages may have been written without being seen. */
void page_owners_forget_pages(struct page_owners *owners);

/* All that is known is forgotten, but for the b-trees whose names are still needed. */
void page_owners_forget(struct page_owners *owners, bool needs_names);

enum page_class {
	PAGE_CLASS_UNKNOWN,
	PAGE_CLASS_BTREE,
	PAGE_CLASS_OVERFLOW, /* of a b-tree */
	PAGE_CLASS_FREE,
	PAGE_CLASS_POINTER_MAP,
};

struct page_owner {
	enum page_class class;
	uint32_t btree; /* 0: none */
};

#define PAGE_TYPES_OF_LEAVES (1u << BTREE_LEAF_TABLE | 1u << BTREE_LEAF_INDEX)
#define PAGE_TYPES (PAGE_TYPES_OF_LEAVES | 1u << BTREE_INTERIOR_TABLE | 1u << BTREE_INTERIOR_INDEX)

static inline uint32_t page_type_of(uint32_t page, const uint8_t *bytes)
{
	const uint32_t type = bytes[page == 1 ? DATABASE_HEADER_BYTES : 0];

	return type < 16 && PAGE_TYPES >> type & 1 ? type : BTREE_NONE;
}

/* Whether the page, which was read and is of this type, is worth page_owners_see(). */
static inline bool page_owners_want(const struct page_owners *owners, uint32_t page, uint32_t type)
{
	return page == 1 || (type != BTREE_LEAF_TABLE && type != BTREE_LEAF_INDEX) ||
	       __atomic_load_n(&owners->leaves, __ATOMIC_RELAXED) || !page_owners_layout(owners).size;
}

/* The value of the page's word if it is a page of a known b-tree which shows nothing new when it is read;
 * else 0. */
static inline uint32_t page_owners_known(const struct page_owners *owners, uint32_t page, uint32_t type)
{
	/* Page 1 tells whether another process has changed the schema. */
	const uint32_t *chunk =
		page > 1 && page < PAGES_IN_CHUNK * PAGE_CHUNKS
			? __atomic_load_n(&owners->chunks[page / PAGES_IN_CHUNK], __ATOMIC_ACQUIRE)
			: NULL;
	const uint32_t word = chunk ? __atomic_load_n(&chunk[page % PAGES_IN_CHUNK], __ATOMIC_RELAXED) : 0;

	if ((word & (CLASS_MASK | IS_LINK)) != PAGE_CLASS_BTREE << CLASS_SHIFT)
		return 0;
	return word >> GENERATION_SHIFT == __atomic_load_n(&owners->generation, __ATOMIC_RELAXED) ||
	                       !page_owners_want(owners, page, type)
	               ? word & VALUE_MASK
	               : 0;
}

/* What the page shows: it has just been written, or was read. `bytes` are the whole page. */
void page_owners_see(struct page_owners *owners, uint32_t page, const uint8_t *bytes, uint32_t size,
                     bool is_written);

/* To whom the page belongs. `type`: the kind of b-tree that its first byte shows, BTREE_NONE or
 * PAGE_TYPE_UNSEEN; a page of another type than its b-tree's is not a page of it any more. A page of the
 * freelist that looks like one of a b-tree may have been taken from it, until the end of the transaction. */
#define PAGE_TYPE_UNSEEN 255u
struct page_owner page_owners_find(struct page_owners *owners, uint32_t page, uint32_t type, bool is_end);

/* The types of pages that the b-tree may have, 1 << type for each; 0: not known yet. */
uint32_t page_owners_types(const struct page_owners *owners, uint32_t btree);

/* The topmost page that is known to lead to this one, of a b-tree that is not known; maybe itself. */
uint32_t page_owners_top(struct page_owners *owners, uint32_t page);

/* A page of an unknown b-tree was read at this time. */
void page_owners_miss(struct page_owners *owners, uint64_t now_ns);

/* The page is written. Whether it had been before; false: not known. */
bool page_owners_set_written(struct page_owners *owners, uint32_t page);

/* NULL: 0. */
const struct page_btree *page_owners_btree(const struct page_owners *owners, uint32_t number);

/* Whether it is a table that a virtual table of the database keeps its content in. */
bool page_owners_is_shadow(const struct page_owners *owners, const struct page_btree *btree);
