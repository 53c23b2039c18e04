/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/pages/page_owners.h"

#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "sqlite/pages/page_memory.h"

#define PAGES_MOST (PAGES_IN_CHUNK * PAGE_CHUNKS)
#define BTREES_MOST (BTREES_IN_BLOCK * BTREE_BLOCKS)
_Static_assert(PAGES_MOST <= VALUE_MASK + 1 && BTREES_MOST <= VALUE_MASK, "24 bits");

#define BTREE_OF_SCHEMA 1u
#define LINKS_MOST 64 /* that are followed at a time */
#define GENERATION_NS 1000000000u
#define LEAVES 1024u
#define PAGES_AHEAD 32768u /* a link far beyond the known pages is not believed */

LOCK_DEFINE(lock, LOCK_PAGE_BTREES);
uint32_t page_owners_version;

/* --- words --------------------------------------------------------------------------------------- */

static uint32_t *word_at(struct page_owners *owners, uint32_t page)
{
	uint32_t *chunk = page < PAGES_MOST
	                          ? __atomic_load_n(&owners->chunks[page / PAGES_IN_CHUNK], __ATOMIC_ACQUIRE)
	                          : NULL;

	return chunk ? &chunk[page % PAGES_IN_CHUNK] : NULL;
}

static uint32_t *make_word(struct page_owners *owners, uint32_t page)
{
	uint32_t **chunk = page < PAGES_MOST ? &owners->chunks[page / PAGES_IN_CHUNK] : NULL;
	uint32_t *made = chunk ? __atomic_load_n(chunk, __ATOMIC_ACQUIRE) : NULL, *none = NULL;

	if (!chunk || made)
		return made ? &made[page % PAGES_IN_CHUNK] : NULL;
	made = page_memory_allocate(PAGES_IN_CHUNK * sizeof(*made));
	/* Another thread may have been quicker; then this one is lost. */
	if (made &&
	    !__atomic_compare_exchange_n(chunk, &none, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		made = none;
	return made ? &made[page % PAGES_IN_CHUNK] : NULL;
}

static uint32_t load(const uint32_t *word)
{
	return word ? __atomic_load_n(word, __ATOMIC_RELAXED) : 0;
}

static enum page_class class_of(uint32_t word)
{
	return (word & CLASS_MASK) >> CLASS_SHIFT;
}

static void set_owner(struct page_owners *owners, uint32_t page, uint32_t owner)
{
	uint32_t *word = make_word(owners, page), before = load(word);

	if (word && (before & OWNER_MASK) != owner)
		__atomic_store_n(word, (before & ~OWNER_MASK) | owner, __ATOMIC_RELAXED);
}

static uint32_t owner_of(enum page_class class, uint32_t value)
{
	return (uint32_t) class << CLASS_SHIFT | value;
}

/* The page's word, with its b-tree in place of the page that names it, if that one's is known. */
static uint32_t resolve(struct page_owners *owners, uint32_t page)
{
	const uint32_t first = load(word_at(owners, page));
	enum page_class class = class_of(first);
	uint32_t word = first;

	for (int i = 0; i < LINKS_MOST && word & IS_LINK; i++)
		word = load(word_at(owners, word & VALUE_MASK));
	if (!(first & IS_LINK))
		return first;
	/* The next page of what turned out to be a trunk. */
	if (class_of(word) == PAGE_CLASS_FREE && class == PAGE_CLASS_OVERFLOW)
		class = PAGE_CLASS_FREE;
	else if (word & IS_LINK || class_of(word) == PAGE_CLASS_FREE || class_of(word) == PAGE_CLASS_UNKNOWN)
		return 0;
	set_owner(owners, page, owner_of(class, word & VALUE_MASK));
	return (first & ~OWNER_MASK) | owner_of(class, word & VALUE_MASK);
}

/* --- b-trees ------------------------------------------------------------------------------------- */

const struct page_btree *page_owners_btree(const struct page_owners *owners, uint32_t number)
{
	/* Acquire: the b-tree. */
	if (!number || number > __atomic_load_n(&owners->btree_count, __ATOMIC_ACQUIRE))
		return NULL;
	return &owners->btrees[number / BTREES_IN_BLOCK][number % BTREES_IN_BLOCK];
}

static struct page_btree *btree_of(struct page_owners *owners, uint32_t number)
{
	return (struct page_btree *)page_owners_btree(owners, number);
}

/* Under the lock. 0: no room. */
static uint32_t add_btree(struct page_owners *owners, const struct page_btree *btree)
{
	const uint32_t number = owners->btree_count + 1;
	struct page_btree **block = &owners->btrees[number / BTREES_IN_BLOCK];

	if (number >= BTREES_MOST ||
	    (!*block && !(*block = page_memory_allocate(BTREES_IN_BLOCK * sizeof(**block)))))
		return 0;
	(*block)[number % BTREES_IN_BLOCK] = *btree;
	__atomic_store_n(&owners->btree_count, number, __ATOMIC_RELEASE);
	return number;
}

static bool is_same(const struct page_btree *one, const struct page_btree *other)
{
	return one->root == other->root && one->is_index == other->is_index &&
	       one->is_virtual == other->is_virtual && one->name_size == other->name_size &&
	       one->table_size == other->table_size && !memcmp(one->name, other->name, one->name_size) &&
	       !memcmp(one->table, other->table, one->table_size);
}

/* The number of the b-tree, which is made if it is new; 0: no room. */
static uint32_t note_btree(struct page_owners *owners, const struct page_btree *btree)
{
	const uint32_t word = btree->root ? load(word_at(owners, btree->root)) : 0;
	const uint32_t before =
		class_of(word) == PAGE_CLASS_BTREE && !(word & IS_LINK) ? word & VALUE_MASK : 0;
	const struct page_btree *known = page_owners_btree(owners, before);
	uint32_t found = 0;

	if (known && is_same(known, btree))
		return before;
	lock_acquire(&lock);
	for (uint32_t i = BTREE_OF_SCHEMA + 1; !found && i <= owners->btree_count; i++)
		if (is_same(page_owners_btree(owners, i), btree))
			found = i;
	if (!found)
		found = add_btree(owners, btree);
	if (found)
		__atomic_store_n(&btree_of(owners, found)->replaced_by, 0, __ATOMIC_RELAXED);
	/* The table was renamed, or dropped. */
	if (found && known && known->root == btree->root)
		__atomic_store_n(&btree_of(owners, before)->replaced_by, found, __ATOMIC_RELAXED);
	page_owners_change();
	lock_release(&lock);
	return found;
}

static const char *const shadows[] = { "content", "data", "idx",  "docsize", "config", "segments",
	                               "segdir",  "stat", "node", "parent",  "rowid" };

bool page_owners_is_shadow(const struct page_owners *owners, const struct page_btree *btree)
{
	for (uint32_t i = 1; i <= __atomic_load_n(&owners->btree_count, __ATOMIC_ACQUIRE); i++) {
		const struct page_btree *virtual = page_owners_btree(owners, i);
		const size_t size = virtual->name_size;

		if (!virtual->is_virtual || btree->table_size <= size + 1 || btree->table[size] != '_' ||
		    memcmp(btree->table, virtual->name, size) != 0)
			continue;
		for (size_t j = 0; j < sizeof(shadows) / sizeof(*shadows); j++)
			if (strlen(shadows[j]) == btree->table_size - size - 1 &&
			    !memcmp(btree->table + size + 1, shadows[j], strlen(shadows[j])))
				return true;
	}
	return false;
}

static const struct page_btree schema = {
	.root = 1, .name_size = 13, .table_size = 13, .name = "sqlite_schema", .table = "sqlite_schema"
};

static void set_layout(struct page_owners *owners, struct page_layout layout)
{
	__atomic_store_n(&owners->layout, layout.size | (uint64_t)layout.usable << 32, __ATOMIC_RELAXED);
}

void page_owners_forget_pages(struct page_owners *owners)
{
	for (uint32_t i = 0; i < PAGE_CHUNKS; i++) {
		uint32_t *words = __atomic_load_n(&owners->chunks[i], __ATOMIC_ACQUIRE);

		for (uint32_t j = 0; words && j < PAGES_IN_CHUNK; j++)
			__atomic_store_n(&words[j], 0, __ATOMIC_RELAXED);
	}
	set_owner(owners, 1, owner_of(PAGE_CLASS_BTREE, BTREE_OF_SCHEMA));
}

void page_owners_forget(struct page_owners *owners, bool needs_names)
{
	page_owners_forget_pages(owners);
	lock_acquire(&lock);
	if (!needs_names)
		__atomic_store_n(&owners->btree_count, 0, __ATOMIC_RELAXED);
	if (!owners->btree_count)
		add_btree(owners, &schema);
	lock_release(&lock);
	set_layout(owners, (struct page_layout){ 0, 0 });
	__atomic_store_n(&owners->has_pointer_map, false, __ATOMIC_RELAXED);
	__atomic_store_n(&owners->generation, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&owners->leaves, LEAVES, __ATOMIC_RELAXED);
	__atomic_store_n(&owners->has_head, false, __ATOMIC_RELAXED);
	__atomic_store_n(&owners->pages, 0, __ATOMIC_RELAXED);
}

/* --- what a page shows --------------------------------------------------------------------------- */

/* A page's b-tree, or the page itself in its place. */
static uint32_t owner_for_links(uint32_t word, uint32_t page)
{
	const uint32_t value = class_of(word) == PAGE_CLASS_UNKNOWN ? 0 : word & VALUE_MASK;

	return value && !(word & IS_LINK) ? value : IS_LINK | page;
}

static void see_pages(struct page_owners *owners, uint32_t pages)
{
	const uint32_t known = pages < PAGES_MOST ? pages : PAGES_MOST;

	if (known > __atomic_load_n(&owners->pages, __ATOMIC_RELAXED))
		__atomic_store_n(&owners->pages, known, __ATOMIC_RELAXED);
}

static void see_link(struct page_owners *owners, uint32_t page, enum page_class class, uint32_t value,
                     bool is_written)
{
	/* What only looks like a page of a b-tree names pages that there are not; they would take memory. */
	if (page / 2 > __atomic_load_n(&owners->pages, __ATOMIC_RELAXED) + PAGES_AHEAD)
		return;
	/* An old page that is read, and of which nothing is known, does not change what is. */
	if (page > 1 && (!(value & IS_LINK) || is_written || !load(word_at(owners, page))))
		set_owner(owners, page, owner_of(class, 0) | value);
}

/* In UTF-8; what does not fit is cut. */
static uint8_t copy_name(char to[BTREE_NAME_BYTES], struct schema_text from, uint32_t encoding)
{
	const uint32_t step = encoding == 2 || encoding == 3 ? 2 : 1;
	uint32_t size = 0, high = 0;

	for (uint32_t i = 0; i + step <= from.size && size + 4 <= BTREE_NAME_BYTES; i += step) {
		uint32_t code = from.bytes[i];

		if (step == 1) {
			to[size++] = (char)code;
			continue;
		}
		code = encoding == 2 ? code | (uint32_t)from.bytes[i + 1] << 8
		                     : code << 8 | from.bytes[i + 1];
		if (code >= 0xd800 && code < 0xdc00) {
			high = code - 0xd800;
			continue;
		}
		if (code >= 0xdc00 && code < 0xe000)
			code = 0x10000 + (high << 10) + (code - 0xdc00);
		size += (uint32_t)text_put_character(&to[size], code);
	}
	/* Whole characters only. */
	while (step == 1 && size < from.size && size && (to[size - 1] & 0xc0) == 0x80)
		size--;
	if (step == 1 && size < from.size && size && (to[size - 1] & 0xc0) == 0xc0)
		size--;
	return (uint8_t)size;
}

static void see_schema(struct page_owners *owners, const struct btree_page *page)
{
	const uint32_t encoding = __atomic_load_n(&owners->encoding, __ATOMIC_RELAXED);
	struct btree_cell cell;
	struct schema_row row;

	for (uint32_t i = 0; page->kind == BTREE_LEAF_TABLE && i < page->cell_count; i++) {
		struct page_btree btree = { 0 };
		uint32_t number;

		if (!btree_page_read_cell(page, i, &cell) ||
		    !btree_page_read_schema(cell.payload, cell.local, &row) || !row.root_is_known ||
		    (row.type != SCHEMA_TABLE && row.type != SCHEMA_INDEX))
			continue;
		btree.root = row.root;
		btree.is_index = row.type == SCHEMA_INDEX;
		btree.is_virtual = row.root == 0;
		btree.name_size = copy_name(btree.name, row.name, encoding);
		btree.table_size = copy_name(btree.table, row.table, encoding);
		number = note_btree(owners, &btree);
		if (number && row.root > 1)
			set_owner(owners, row.root, owner_of(PAGE_CLASS_BTREE, number));
	}
}

static void see_btree(struct page_owners *owners, uint32_t number, uint32_t word, const uint8_t *bytes,
                      struct page_layout layout, bool is_written)
{
	const uint32_t value = owner_for_links(word, number);
	struct page_links links;
	struct btree_page page;
	bool is_overflow, has_overflow;
	uint32_t linked, leaves;

	if (!btree_page_read(&page, bytes, layout, number))
		return;
	if (value == BTREE_OF_SCHEMA)
		see_schema(owners, &page);
	btree_page_begin_links(&links, &page);
	/* A leaf has no other links. */
	has_overflow = btree_page_has_overflow(&page);
	while ((has_overflow || btree_page_is_interior(&page)) &&
	       btree_page_next_link(&links, &linked, &is_overflow))
		see_link(owners, linked, is_overflow ? PAGE_CLASS_OVERFLOW : PAGE_CLASS_BTREE, value,
		         is_written);
	leaves = __atomic_load_n(&owners->leaves, __ATOMIC_RELAXED);
	if (value != BTREE_OF_SCHEMA && (has_overflow || (leaves && !btree_page_is_interior(&page))))
		__atomic_store_n(&owners->leaves, has_overflow ? LEAVES : leaves - 1, __ATOMIC_RELAXED);
}

static void see_trunk(struct page_owners *owners, const uint8_t *bytes, struct page_layout layout)
{
	const uint32_t count = btree_page_free_count(bytes, layout);
	const uint32_t next = btree_page_next(bytes), free = owner_of(PAGE_CLASS_FREE, 0);

	if (next > 1)
		set_owner(owners, next, free);
	for (uint32_t i = 0; i < count; i++)
		if (btree_page_free_leaf(bytes, i) > 1)
			set_owner(owners, btree_page_free_leaf(bytes, i), free);
}

/* Whether the page looks like a trunk with leaves. It may be written before the page that names it, and
 * content of an overflow page hardly looks so. */
static bool is_trunk(const uint8_t *bytes, struct page_layout layout)
{
	const uint32_t count = btree_page_free_count(bytes, layout);

	/* The same as the number at the place of the count: that is not more than fits. */
	if (!count || btree_page_next(bytes + 4) != count || btree_page_next(bytes) >= PAGES_MOST)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t leaf = btree_page_free_leaf(bytes, i);

		if (leaf < 2 || leaf >= PAGES_MOST)
			return false;
	}
	return true;
}

/* All pages count as not parsed. */
static void begin_generation(struct page_owners *owners)
{
	const uint32_t before = __atomic_load_n(&owners->generation, __ATOMIC_RELAXED);

	__atomic_store_n(&owners->generation, before % (GENERATIONS - 1) + 1, __ATOMIC_RELAXED);
}

static void see_head(struct page_owners *owners, const uint8_t *bytes, uint32_t size, bool is_written)
{
	const struct page_layout before = page_owners_layout(owners);
	struct database_header header;

	__atomic_store_n(&owners->has_head, true, __ATOMIC_RELAXED);
	if (!btree_page_read_header(bytes, size, &header)) {
		set_layout(owners, (struct page_layout){ 0, 0 });
		return;
	}
	if (header.layout.size != size)
		return;
	if (before.size && before.usable != header.layout.usable)
		page_owners_forget_pages(owners);
	set_layout(owners, header.layout);
	__atomic_store_n(&owners->has_pointer_map, header.has_pointer_map, __ATOMIC_RELAXED);
	__atomic_store_n(&owners->encoding, header.encoding, __ATOMIC_RELAXED);
	see_pages(owners, header.page_count);
	/* Another process may have changed the schema: its pages have to be parsed again. */
	if (__atomic_exchange_n(&owners->schema_cookie, header.schema_cookie, __ATOMIC_RELAXED) !=
	            header.schema_cookie &&
	    !is_written)
		begin_generation(owners);
	if (header.first_trunk > 1)
		set_owner(owners, header.first_trunk, owner_of(PAGE_CLASS_FREE, 0));
}

/* Not if the layout is not known, as when page 1 has become encrypted. */
static bool is_pointer_map(const struct page_owners *owners, uint32_t page)
{
	const struct page_layout layout = page_owners_layout(owners);

	return layout.size && __atomic_load_n(&owners->has_pointer_map, __ATOMIC_RELAXED) &&
	       btree_page_map_of(page, layout) == page;
}

void page_owners_see(struct page_owners *owners, uint32_t page, const uint8_t *bytes, uint32_t size,
                     bool is_written)
{
	const uint32_t type = page_type_of(page, bytes);
	uint32_t *word = make_word(owners, page), known, generation;
	struct page_layout layout;

	if (!word)
		return;
	if (page == 1)
		see_head(owners, bytes, size, is_written);
	known = load(word);
	generation = __atomic_load_n(&owners->generation, __ATOMIC_RELAXED);
	if (!is_written && known >> GENERATION_SHIFT == generation)
		return;
	see_pages(owners, page);
	layout = page_owners_layout(owners);
	/* Page 1 of a database is read first. Of a new one it is written last. */
	if (is_written && !__atomic_load_n(&owners->has_head, __ATOMIC_RELAXED) && !layout.size) {
		layout = (struct page_layout){ size, size };
		set_layout(owners, layout);
	}
	if (size != layout.size || is_pointer_map(owners, page))
		return;
	known = resolve(owners, page);
	if (type != BTREE_NONE)
		see_btree(owners, page, class_of(known) == PAGE_CLASS_BTREE ? known : 0, bytes, layout,
		          is_written);
	else if (class_of(known) == PAGE_CLASS_FREE ||
	         ((is_written || class_of(known) != PAGE_CLASS_OVERFLOW) && is_trunk(bytes, layout)))
		see_trunk(owners, bytes, layout);
	else if (btree_page_next(bytes) > 1)
		see_link(owners, btree_page_next(bytes), PAGE_CLASS_OVERFLOW,
		         owner_for_links(class_of(known) == PAGE_CLASS_OVERFLOW ? known : 0, page),
		         is_written);
	known = load(word);
	__atomic_store_n(word, (known & ~(0u - (1u << GENERATION_SHIFT))) | generation << GENERATION_SHIFT,
	                 __ATOMIC_RELAXED);
}

static bool is_of_index(uint32_t type)
{
	return type == BTREE_INTERIOR_INDEX || type == BTREE_LEAF_INDEX;
}

/* Whether a page of this type may be a page of the b-tree. */
static bool fits(struct page_btree *btree, uint32_t page, uint32_t type)
{
	if (type == BTREE_NONE)
		return false;
	if (btree->is_index)
		return is_of_index(type);
	if (page == btree->root &&
	    (!__atomic_load_n(&btree->has_type, __ATOMIC_RELAXED) ||
	     __atomic_load_n(&btree->is_without_rowid, __ATOMIC_RELAXED) != is_of_index(type))) {
		__atomic_store_n(&btree->is_without_rowid, is_of_index(type), __ATOMIC_RELAXED);
		__atomic_store_n(&btree->has_type, true, __ATOMIC_RELAXED);
		page_owners_change();
	}
	return !__atomic_load_n(&btree->has_type, __ATOMIC_RELAXED) ||
	       is_of_index(type) == __atomic_load_n(&btree->is_without_rowid, __ATOMIC_RELAXED);
}

struct page_owner page_owners_find(struct page_owners *owners, uint32_t page, uint32_t type, bool is_end)
{
	static const struct page_owner unknown = { PAGE_CLASS_UNKNOWN, 0 };
	struct page_btree *btree;
	struct page_owner owner;
	uint32_t word;

	if (is_pointer_map(owners, page))
		return (struct page_owner){ PAGE_CLASS_POINTER_MAP, 0 };
	word = resolve(owners, page);
	owner = (struct page_owner){ class_of(word), word & VALUE_MASK };
	if (owner.class == PAGE_CLASS_UNKNOWN)
		return unknown;
	if (owner.class == PAGE_CLASS_FREE)
		return is_end || type == BTREE_NONE ? (struct page_owner){ PAGE_CLASS_FREE, 0 } : unknown;
	while ((btree = btree_of(owners, owner.btree)) &&
	       __atomic_load_n(&btree->replaced_by, __ATOMIC_RELAXED))
		owner.btree = __atomic_load_n(&btree->replaced_by, __ATOMIC_RELAXED);
	if (!btree)
		return unknown;
	if (type == PAGE_TYPE_UNSEEN)
		return owner;
	if (owner.class == PAGE_CLASS_OVERFLOW)
		return type == BTREE_NONE ? owner : unknown;
	return fits(btree, page, type) ? owner : unknown;
}

uint32_t page_owners_types(const struct page_owners *owners, uint32_t number)
{
	static const uint32_t of_index = 1u << BTREE_INTERIOR_INDEX | 1u << BTREE_LEAF_INDEX,
			      of_table = 1u << BTREE_INTERIOR_TABLE | 1u << BTREE_LEAF_TABLE;
	const struct page_btree *btree = page_owners_btree(owners, number);

	if (!btree || (!btree->is_index && !__atomic_load_n(&btree->has_type, __ATOMIC_RELAXED)))
		return 0;
	return btree->is_index || __atomic_load_n(&btree->is_without_rowid, __ATOMIC_RELAXED) ? of_index
	                                                                                      : of_table;
}

uint32_t page_owners_top(struct page_owners *owners, uint32_t page)
{
	uint32_t word = load(word_at(owners, page));

	for (int i = 0; i < LINKS_MOST && word & IS_LINK; i++) {
		page = word & VALUE_MASK;
		word = load(word_at(owners, page));
	}
	return page;
}

void page_owners_miss(struct page_owners *owners, uint64_t now_ns)
{
	__atomic_store_n(&owners->leaves, LEAVES, __ATOMIC_RELAXED);
	if (now_ns - __atomic_load_n(&owners->generation_ns, __ATOMIC_RELAXED) < GENERATION_NS)
		return;
	__atomic_store_n(&owners->generation_ns, now_ns, __ATOMIC_RELAXED);
	begin_generation(owners);
}

bool page_owners_set_written(struct page_owners *owners, uint32_t page)
{
	uint32_t *word = make_word(owners, page), before = load(word);

	if (word && !(before & IS_WRITTEN))
		__atomic_store_n(word, before | IS_WRITTEN, __ATOMIC_RELAXED);
	return before & IS_WRITTEN;
}
