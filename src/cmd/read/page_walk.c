/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interior pages of a b-tree name all its pages, and all its leaves have the same depth, so the leaves
 * need not be read. The remaining pages are overflow pages. The pointer map names their owners. In a database
 * without a pointer map, the leaves name them; they are read until a limit is reached.
 *
 * A program may write meanwhile. A page may then be newer than the page that led to it, so the owners of a
 * few pages may be wrong. The walk is safe nevertheless, because it trusts no number.
 */
#include "cmd/read/page_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"
#include "cmd/ui/complain.h"
#include "sqlite/pages/btree_page.h"

#define BYTES_MAX ((uint64_t)64 << 20)
#define TIME_MAX UINT64_C(1000000000)
#define PAGES_MAX ((uint32_t)1 << 29)
#define DEPTH_MAX 20 /* SQLite's own limit */

/* An owner is the number of a tree, from 1, or one of these. */
enum { OWNER_UNKNOWN = 0, OWNER_FREE = -1, OWNER_MAP = -2 };

struct tree {
	uint32_t root, pages;
	int type; /* a schema_type */
	bool is_index;
	char *name, *table;
};

struct walk {
	int database, wal;
	struct database_header header;
	uint32_t page_count, known;
	int32_t *owners;  /* by number; mapped, so that only what is used takes memory */
	uint32_t *frames; /* the newest committed frame of a page in the WAL, from 1; NULL: no WAL */
	VECTOR(struct tree) trees;
	uint8_t *pages[DEPTH_MAX + 2]; /* one for each level of a tree, and one for the pages of chains */
	uint64_t bytes;
	uint64_t begin;
	const char *stopped; /* why it stopped; NULL: it did not */
};

/* --- reading ---------------------------------------------------------------------------------- */

static bool may_read(struct walk *walk, size_t size)
{
	if (!walk->stopped && walk->bytes + size > BYTES_MAX)
		walk->stopped = "64 MB were read";
	if (!walk->stopped && clock_ns(CLOCK_MONOTONIC) - walk->begin > TIME_MAX)
		walk->stopped = "a second had passed";
	return !walk->stopped;
}

static bool read_bytes(struct walk *walk, int file, uint8_t *to, size_t size, uint64_t offset)
{
	if (!may_read(walk, size))
		return false;
	walk->bytes += size;
	return pread(file, to, size, (off_t)offset) == (ssize_t)size;
}

static bool read_page(struct walk *walk, uint32_t number, uint8_t *to)
{
	const uint64_t size = walk->header.layout.size;

	if (!number || number > walk->page_count)
		return false;
	if (walk->frames && walk->frames[number])
		return read_bytes(walk, walk->wal, to, size,
		                  WAL_HEADER_BYTES + (walk->frames[number] - 1) * (size + WAL_FRAME_BYTES) +
		                          WAL_FRAME_BYTES);
	return read_bytes(walk, walk->database, to, size, (number - 1) * size);
}

/* Memory for one number per page, all 0. */
static void *map_numbers(uint32_t count)
{
	void *memory = mmap(NULL, ((size_t)count + 1) * sizeof(uint32_t), PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_numbers(void *memory, uint32_t count)
{
	if (memory)
		munmap(memory, ((size_t)count + 1) * sizeof(uint32_t));
}

/* The frames up to the last commit are part of the database, and may enlarge it. The first of two rounds
 * finds that commit. */
static bool read_wal(struct walk *walk)
{
	uint8_t bytes[WAL_HEADER_BYTES];
	struct wal_header header;
	struct wal_frame frame;
	uint32_t last = 0, pages = 0;

	if (!read_bytes(walk, walk->wal, bytes, sizeof(bytes), 0) ||
	    !btree_page_read_wal(bytes, sizeof(bytes), &header) ||
	    header.page_size != walk->header.layout.size)
		return true;
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 1; round == 0 || i <= last; i++) {
			const uint64_t offset =
				WAL_HEADER_BYTES +
				(uint64_t)(i - 1) * (walk->header.layout.size + WAL_FRAME_BYTES);

			if (!read_bytes(walk, walk->wal, bytes, WAL_FRAME_BYTES, offset) ||
			    !btree_page_read_frame(bytes, WAL_FRAME_BYTES, &frame) ||
			    memcmp(frame.salt, header.salt, sizeof(frame.salt)) != 0)
				break;
			if (round == 0 && frame.page_count) {
				last = i;
				pages = frame.page_count;
			} else if (round == 1 && frame.page <= walk->page_count) {
				walk->frames[frame.page] = i;
			}
		}
		if (round == 0 && last) {
			walk->page_count = pages < PAGES_MAX ? pages : PAGES_MAX;
			walk->frames = map_numbers(walk->page_count);
			if (!walk->frames)
				return false;
		}
	}
	return true;
}

/* --- owners ----------------------------------------------------------------------------------------- */

/* False: the page has an owner already, or does not exist. */
static bool set_owner(struct walk *walk, uint32_t number, int32_t owner)
{
	if (!number || number > walk->page_count || walk->owners[number] != OWNER_UNKNOWN)
		return false;
	walk->owners[number] = owner;
	walk->known++;
	return true;
}

/* A tree is named by its index, because the schema's rows add to the vector. */
static bool add_page(struct walk *walk, size_t tree, uint32_t number)
{
	const bool is_new = set_owner(walk, number, (int32_t)tree + 1);

	walk->trees.items[tree].pages += is_new;
	return is_new;
}

/* Adds the pages of a chain until one has an owner, which also ends a cycle. */
static void add_chain(struct walk *walk, size_t tree, uint32_t first, uint8_t *bytes)
{
	for (uint32_t number = first; add_page(walk, tree, number);) {
		if (!read_page(walk, number, bytes))
			return;
		number = btree_page_next(bytes);
	}
}

/* How a tree is walked. */
struct traversal {
	bool reads_leaves;
	int leaf_depth; /* -1: not known yet */
	void (*visit_row)(struct walk *walk, const struct btree_cell *cell);
};

static void walk_tree(struct walk *walk, size_t tree, uint32_t number, int depth,
                      struct traversal *traversal);

/* Follows the links of a page. */
static void walk_links(struct walk *walk, size_t tree, const struct btree_page *page, int depth,
                       struct traversal *traversal)
{
	struct page_links links;
	uint32_t number;
	bool is_overflow;

	btree_page_begin_links(&links, page);
	while (btree_page_next_link(&links, &number, &is_overflow)) {
		if (is_overflow)
			add_chain(walk, tree, number, walk->pages[DEPTH_MAX + 1]);
		else if (depth + 1 == traversal->leaf_depth && !traversal->reads_leaves)
			add_page(walk, tree, number);
		else
			walk_tree(walk, tree, number, depth + 1, traversal);
	}
}

static void walk_tree(struct walk *walk, size_t tree, uint32_t number, int depth, struct traversal *traversal)
{
	uint8_t *bytes = walk->pages[depth];
	struct btree_page page;
	struct btree_cell cell;

	/* Leaves that are read for their overflow pages have owners already. */
	if (depth >= DEPTH_MAX || (!add_page(walk, tree, number) && !traversal->reads_leaves))
		return;
	if (!read_page(walk, number, bytes) || !btree_page_read(&page, bytes, walk->header.layout, number))
		return;
	if (!btree_page_is_interior(&page))
		traversal->leaf_depth = depth;
	walk->trees.items[tree].is_index = page.kind == BTREE_LEAF_INDEX || page.kind == BTREE_INTERIOR_INDEX;
	walk_links(walk, tree, &page, depth, traversal);
	for (uint32_t i = 0; traversal->visit_row && i < page.cell_count; i++)
		if (btree_page_read_cell(&page, i, &cell) && cell.payload)
			traversal->visit_row(walk, &cell);
}

static void walk_all_trees(struct walk *walk, bool reads_leaves)
{
	for (size_t i = 1; i < walk->trees.count && !walk->stopped; i++) {
		struct traversal traversal = { .reads_leaves = reads_leaves, .leaf_depth = -1 };

		walk_tree(walk, i, walk->trees.items[i].root, 0, &traversal);
	}
}

/* --- the schema ------------------------------------------------------------------------------------- */

/* As UTF-8; in a UTF-16 database, letters outside ASCII become '?'. */
static char *name_of(const struct walk *walk, struct schema_text text)
{
	const bool is_wide = walk->header.encoding > 1;
	char *name = malloc((size_t)text.size + 1), *end = name;

	for (uint32_t i = 0; name && i + is_wide < text.size; i += 1 + is_wide) {
		const uint8_t low = text.bytes[i + (walk->header.encoding == 3)],
			      high = is_wide ? text.bytes[i + (walk->header.encoding == 2)] : 0;

		*end++ = high || (is_wide && low > 127) ? '?' : (char)low;
	}
	if (name)
		*end = '\0';
	return name;
}

/* The row's payload with as many of its overflow pages as contain its root page. */
static size_t whole_payload(struct walk *walk, const struct btree_cell *cell, uint8_t *to, size_t room)
{
	size_t size = cell->local < room ? cell->local : room;

	memcpy(to, cell->payload, size);
	for (uint32_t number = cell->overflow; number && size < room && size < cell->size;) {
		uint8_t *bytes = walk->pages[DEPTH_MAX + 1];
		size_t here = walk->header.layout.usable - 4;

		if (!read_page(walk, number, bytes))
			break;
		here = here < cell->size - size ? here : (size_t)(cell->size - size);
		here = here < room - size ? here : room - size;
		memcpy(to + size, bytes + 4, here);
		size += here;
		number = btree_page_next(bytes);
	}
	return size;
}

static void add_schema_row(struct walk *walk, const struct btree_cell *cell)
{
	uint8_t payload[4096];
	const size_t size = whole_payload(walk, cell, payload, sizeof(payload));
	struct schema_row row;

	if (!btree_page_read_schema(payload, size, &row) || !row.root_is_known)
		return;
	/* Virtual tables have no b-tree. Names tell which tables belong to them. */
	const struct tree tree = { .root = row.root,
		                   .type = row.type,
		                   .name = name_of(walk, row.name),
		                   .table = name_of(walk, row.table) };
	if ((!tree.root && row.type != SCHEMA_TABLE) || !tree.name || !tree.table ||
	    !vector_push(&walk->trees, tree)) {
		free(tree.name);
		free(tree.table);
	}
}

static bool walk_schema(struct walk *walk)
{
	const struct tree schema = { .root = 1,
		                     .type = SCHEMA_TABLE,
		                     .name = strdup("sqlite_schema"),
		                     .table = strdup("sqlite_schema") };
	struct traversal traversal = { .reads_leaves = true, .leaf_depth = -1, .visit_row = add_schema_row };

	struct database_header newer;

	/* The WAL may contain a newer header. */
	if (read_page(walk, 1, walk->pages[0]) &&
	    btree_page_read_header(walk->pages[0], walk->header.layout.size, &newer) &&
	    newer.layout.size == walk->header.layout.size)
		walk->header = newer;
	if (!schema.name || !schema.table || !vector_push(&walk->trees, schema))
		return false;
	walk_tree(walk, 0, 1, 0, &traversal);
	return true;
}

/* --- other pages ------------------------------------------------------------------------------------- */

static void walk_freelist(struct walk *walk)
{
	uint8_t *bytes = walk->pages[0];

	for (uint32_t trunk = walk->header.first_trunk; set_owner(walk, trunk, OWNER_FREE);) {
		if (!read_page(walk, trunk, bytes))
			return;
		for (uint32_t i = 0, count = btree_page_free_count(bytes, walk->header.layout); i < count;
		     i++)
			set_owner(walk, btree_page_free_leaf(bytes, i), OWNER_FREE);
		trunk = btree_page_next(bytes);
	}
}

/* Gives overflow pages the owner of their parent. A parent may come later in the file and have no owner yet,
 * so the passes over the file repeat until one finds nothing. */
static void walk_pointer_map(struct walk *walk)
{
	const struct page_layout layout = walk->header.layout;
	uint8_t *bytes = walk->pages[0];
	struct pointer_entry entry;
	uint32_t before;

	do {
		uint32_t map = 0;

		before = walk->known;
		for (uint32_t number = 2; number <= walk->page_count && !walk->stopped; number++) {
			if (btree_page_map_of(number, layout) == number)
				set_owner(walk, number, OWNER_MAP);
			if (walk->owners[number] != OWNER_UNKNOWN || !btree_page_map_of(number, layout))
				continue;
			if (map != btree_page_map_of(number, layout)) {
				map = btree_page_map_of(number, layout);
				if (!read_page(walk, map, bytes))
					return;
			}
			if (btree_page_read_pointer(bytes, layout, map, number, &entry) &&
			    (entry.type == POINTER_OVERFLOW || entry.type == POINTER_OVERFLOW_REST) &&
			    entry.parent <= walk->page_count && walk->owners[entry.parent] > 0)
				add_page(walk, (size_t)walk->owners[entry.parent] - 1, number);
		}
	} while (walk->known > before);
}

/* --- opening, and what SQL sees ----------------------------------------------------------------------------
 */

static void end(void *context)
{
	struct walk *walk = context;

	if (walk->database >= 0)
		close(walk->database);
	if (walk->wal >= 0)
		close(walk->wal);
	unmap_numbers(walk->owners, walk->page_count);
	unmap_numbers(walk->frames, walk->page_count);
	for (size_t i = 0; i < walk->trees.count; i++) {
		free(walk->trees.items[i].name);
		free(walk->trees.items[i].table);
	}
	vector_free(&walk->trees);
	for (size_t i = 0; i < DEPTH_MAX + 2; i++)
		free(walk->pages[i]);
	free(walk);
}

/* A command_result. */
static int open_files(struct walk *walk, const char *path)
{
	uint8_t bytes[DATABASE_HEADER_BYTES];
	char *wal = text_format("%s-wal", path);
	struct stat status;

	walk->database = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (walk->database < 0 || fstat(walk->database, &status)) {
		free(wal);
		return complain("pages: --walk %s: %s; expected a file that is a database of SQLite", path,
		                strerror(errno));
	}
	if (!S_ISREG(status.st_mode) || !read_bytes(walk, walk->database, bytes, sizeof(bytes), 0) ||
	    !btree_page_read_header(bytes, sizeof(bytes), &walk->header)) {
		free(wal);
		return complain("pages: --walk %s: not a database of SQLite, or encrypted", path);
	}
	walk->page_count = status.st_size / walk->header.layout.size < PAGES_MAX
	                           ? (uint32_t)(status.st_size / walk->header.layout.size)
	                           : PAGES_MAX;
	walk->wal = wal ? open(wal, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	free(wal);
	if (walk->wal >= 0 && (fstat(walk->wal, &status) || !S_ISREG(status.st_mode) || !read_wal(walk)))
		return complain("pages: --walk %s-wal: cannot be read", path);
	walk->owners = map_numbers(walk->page_count);
	for (size_t i = 0; i < DEPTH_MAX + 2; i++)
		if (!(walk->pages[i] = malloc(walk->header.layout.size)))
			return complain("pages: --walk %s: out of memory", path);
	return walk->owners ? COMMAND_FINE : complain("pages: --walk %s: out of memory", path);
}

static int walk_file(struct walk *walk, const char *path)
{
	const int result = open_files(walk, path);

	if (result)
		return result;
	if (!walk_schema(walk))
		return complain("pages: --walk %s: out of memory", path);
	walk_all_trees(walk, false);
	walk_freelist(walk);
	if (walk->header.has_pointer_map)
		walk_pointer_map(walk);
	else if (walk->known < walk->page_count)
		walk_all_trees(walk, true);
	return COMMAND_FINE;
}

static void page_owner(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct walk *walk = sqlite3_user_data(context);
	const int64_t number = sqlite3_value_int64(values[0]);

	(void)count;
	if (number >= 1 && number <= walk->page_count && walk->owners[number] != OWNER_UNKNOWN) {
		const int32_t owner = walk->owners[number];

		sqlite3_result_int64(context, owner > 0 ? (int64_t)walk->trees.items[owner - 1].root : owner);
	}
}

static int insert_trees(sqlite3 *db, const struct walk *walk)
{
	static const char *const types[] = {
		[SCHEMA_UNKNOWN] = "", [SCHEMA_TABLE] = "table", [SCHEMA_INDEX] = "index"
	};
	sqlite3_stmt *insertion = NULL;
	int code = sqlite3_prepare_v2(db, "INSERT INTO temp.walked_trees VALUES (?, ?, ?, ?, ?, ?)", -1,
	                              &insertion, NULL);

	for (size_t i = 0; !code && i < walk->trees.count; i++) {
		const struct tree *tree = &walk->trees.items[i];

		if (tree->type > SCHEMA_INDEX)
			continue;
		sqlite3_bind_int64(insertion, 1, tree->root);
		sqlite3_bind_text(insertion, 2, types[tree->type], -1, SQLITE_STATIC);
		sqlite3_bind_text(insertion, 3, tree->name, -1, SQLITE_STATIC);
		sqlite3_bind_text(insertion, 4, tree->table, -1, SQLITE_STATIC);
		sqlite3_bind_int(insertion, 5, tree->is_index);
		sqlite3_bind_int64(insertion, 6, tree->pages);
		sqlite3_step(insertion);
		code = sqlite3_reset(insertion);
	}
	sqlite3_finalize(insertion);
	return code;
}

#define TABLES                                                                                               \
	"DROP TABLE IF EXISTS temp.walked_trees; DROP TABLE IF EXISTS temp.walk;"                            \
	"CREATE TEMP TABLE walked_trees (root_page INTEGER, type TEXT, name TEXT, \"table\" TEXT, is_index " \
	"INTEGER, pages INTEGER);"                                                                           \
	"CREATE TEMP TABLE walk AS SELECT %Q AS database, %u AS page_size, %u AS pages, %u AS known, "       \
	"%lld AS bytes, %lld AS ns, %Q AS stopped WHERE %d"

/* Afterwards the connection owns the walk. An SQLite result. */
static int show(sqlite3 *db, struct walk *walk, const char *path)
{
	char *real = path ? realpath(path, NULL) : NULL;
	char *sql = sqlite3_mprintf(TABLES, real ? real : path, walk->header.layout.size, walk->page_count,
	                            walk->known, (long long)walk->bytes,
	                            (long long)(clock_ns(CLOCK_MONOTONIC) - walk->begin),
	                            walk->stopped ? walk->stopped : "", path != NULL);
	int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	if (!code)
		code = insert_trees(db, walk);
	free(real);
	sqlite3_free(sql);
	/* SQLite calls end() even if it fails. */
	return code ? (end(walk), code)
	            : sqlite3_create_function_v2(db, "pageOwner", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, walk,
	                                         page_owner, NULL, NULL, end);
}

int page_walk(sqlite3 *db, const char *path)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	int result;

	if (!walk)
		return complain("pages: out of memory");
	walk->database = walk->wal = -1;
	walk->begin = clock_ns(CLOCK_MONOTONIC);
	result = path ? walk_file(walk, path) : COMMAND_FINE;
	if (result) {
		end(walk);
		return result;
	}
	return show(db, walk, path) ? complain("pages: %s", sqlite3_errmsg(db)) : COMMAND_FINE;
}
