/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry has the results of the look-ups in one object. It is valid as long as each file that they opened
 * is unchanged, and each file that they missed is still missing: new debug information, another archive or a
 * rebuilt program invalidates it.
 *
 * A look-up in an object with lines costs some ten thousand times as much for the first address as for the
 * next one, because its debug information has to be decompressed, and each recording has samples at other
 * addresses of the same functions. So an entry has the extents of addresses with the same frames, and also
 * those around each address in its function. If an object has no lines and all its names were read, the entry
 * has all functions, so other addresses need no comparison with an archive either.
 *
 * Another build of this command has entries of its own. A file that changed just now is not cached, because
 * it may change again with the same time. A cache that is locked, damaged or full is not an error: it is
 * ignored, removed, or started afresh.
 */
#include "cmd/file/name_cache.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash_table.h"
#include "base/interner.h"
#include "base/text.h"
#include "base/vector.h"
#include "cmd/file/debug_copy.h"
#include "symbol/consulted.h"
#include "symbol/debuginfod.h"
#include "symbol/symbol.h"

#define BYTES_MAX (16 << 20)
#define FUNCTIONS_MAX 20000
#define LOCK_MS 100
#define STABLE_S 2
#define AROUND_MAX 64 /* extents on each side of an address */
#define NOT_CACHED SIZE_MAX

/* --- statements -------------------------------------------------------------------- */

static const char schema[] =
	"PRAGMA synchronous = NORMAL;"
	"CREATE TABLE IF NOT EXISTS objects (id INTEGER PRIMARY KEY, key TEXT UNIQUE, files TEXT, has_all"
	" INTEGER, has_lines INTEGER);"
	/* Without function and file: it is known that nothing is known. */
	"CREATE TABLE IF NOT EXISTS frames (object INTEGER, start INTEGER, level INTEGER, end INTEGER,"
	" inlined INTEGER, function TEXT, file TEXT, line INTEGER,"
	" PRIMARY KEY (object, start, level)) WITHOUT ROWID;";

enum statement {
	FIND_OBJECT,
	FIND_FRAMES,
	SIZE,
	FORGET_FRAMES,
	ADD_OBJECT,
	ADD_FRAME,
	STATEMENTS,
};

static const char *const statement_sql[STATEMENTS] = {
	[FIND_OBJECT] = "SELECT id, has_all, has_lines, files FROM objects WHERE key = ?1",
	[FIND_FRAMES] = "SELECT end, inlined, function, file, line FROM frames WHERE object = ?1 AND start ="
			" (SELECT max(start) FROM frames WHERE object = ?1 AND start <= ?2) ORDER BY level",
	[SIZE] = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count,"
		 " pragma_freelist_count, pragma_page_size",
	[FORGET_FRAMES] = "DELETE FROM frames WHERE object = (SELECT id FROM objects WHERE key = ?1)",
	[ADD_OBJECT] = "INSERT INTO objects (key, files, has_all, has_lines) VALUES (?1, ?2, ?3, ?4)"
		       " ON CONFLICT (key) DO UPDATE SET files = ?2, has_all = ?3, has_lines = ?4"
		       " RETURNING id",
	[ADD_FRAME] =
		"INSERT OR REPLACE INTO frames (object, start, end, level, inlined, function, file, line)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
};

struct finding {
	struct extent extent;
	size_t first, count; /* within the entry's frames */
};

/* One object in this run of the command. */
struct entry {
	struct symbol_object object; /* the interner owns the strings */
	const char *key;             /* NULL: not started */
	int64_t row;                 /* the cache's valid entry; 0: none, or an invalid one */
	bool has_all;                /* functions that are missing have no name */
	bool has_lines;              /* the result is final */
	bool is_unfit;    /* not to be stored: a file changed just now, or not all files are known */
	char *files;      /* a line each: its state, a tab, its path */
	const char *read; /* `files` as the cache had it */
	VECTOR(struct finding) findings;
	VECTOR(struct symbol_frame) frames;
	struct hash_table starts; /* of the findings' extents */
};

struct name_cache {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	char *folder, *path;
	char *self; /* the state of this command's file */
	struct interner texts, keys;
	VECTOR(struct entry) entries; /* by number of their key */
};

static const char *keep(struct name_cache *cache, const char *text)
{
	return text ? interner_keep(&cache->texts, text, strlen(text)) : NULL;
}

static const char *keep_column(struct name_cache *cache, sqlite3_stmt *row, int column)
{
	return keep(cache, (const char *)sqlite3_column_text(row, column));
}

/* SQLITE_OK after a statement that returns no row, or an error. */
static int run(sqlite3_stmt *statement)
{
	sqlite3_step(statement);
	return sqlite3_reset(statement);
}

/* --- the files that an entry depends on -------------------------------------------- */

/* Describes the file at the path; *is_new: it was created or changed just now. */
static char *state_of(const char *path, bool *is_new)
{
	struct stat file;
	struct timespec now;

	if (stat(path, &file) != 0)
		return strdup("-");
	clock_gettime(CLOCK_REALTIME, &now);
	*is_new |= file.st_ctim.tv_sec > now.tv_sec - STABLE_S;
	return text_format("%llx:%llx:%llx:%lld.%ld:%lld.%ld", (long long)file.st_dev, (long long)file.st_ino,
	                   (long long)file.st_size, (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec,
	                   (long long)file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

/* Runs before the look-up opens the file, so the data is never older than the state. */
static void note_file(void *context, const char *path)
{
	struct entry *entry = context;
	char *known = text_format("\t%s\n", path), *state = state_of(path, &entry->is_unfit), *files = NULL;

	if (!known || !state || path[0] != '/' || strpbrk(path, "\t\n"))
		entry->is_unfit = true;
	else if (entry->files && strstr(entry->files, known))
		;
	else if ((files = text_format("%s%s%s", entry->files ? entry->files : "", state, known))) {
		free(entry->files);
		entry->files = files;
	} else {
		entry->is_unfit = true;
	}
	free(known);
	free(state);
}

static bool are_as_noted(const char *files)
{
	bool ignored = false, same = true;

	for (const char *line = files, *end; same && (end = strchr(line, '\n')); line = end + 1) {
		const char *tab = strchr(line, '\t');
		char *path = tab && tab < end ? strndup(tab + 1, (size_t)(end - tab) - 1) : NULL;
		char *state = path ? state_of(path, &ignored) : NULL;
		same = state && strlen(state) == (size_t)(tab - line) &&
		       memcmp(state, line, (size_t)(tab - line)) == 0;
		free(state);
		free(path);
	}
	return same && *files;
}

/* --- entries ----------------------------------------------------------------------- */

static char *key_of(const struct name_cache *cache, const struct symbol_object *object)
{
	return text_format("%s\n%s\n%s\n%s\n%llu\n%lld", cache->self, symbol_debug_path(), object->path,
	                   object->build_id, (unsigned long long)object->file_size,
	                   (long long)object->mtime_ns);
}

static void read_entry(struct name_cache *cache, struct entry *entry)
{
	sqlite3_stmt *row = cache->statements[FIND_OBJECT];

	sqlite3_bind_text(row, 1, entry->key, -1, SQLITE_STATIC);
	if (sqlite3_step(row) == SQLITE_ROW) {
		const char *files = keep_column(cache, row, 3);
		bool has_lines = sqlite3_column_int(row, 2);
		/* A server may provide lines by now. */
		if (files && are_as_noted(files) && (has_lines || !debuginfod_is_wanted())) {
			entry->row = sqlite3_column_int64(row, 0);
			entry->has_all = sqlite3_column_int(row, 1);
			entry->has_lines = has_lines;
			entry->files = strdup(files);
			entry->read = files;
		}
	}
	sqlite3_reset(row);
}

/* NULL: no memory. */
static struct entry *entry_of(struct name_cache *cache, const struct symbol_object *object)
{
	char *key = key_of(cache, object);
	uint32_t number = key ? interner_number(&cache->keys, key) : INTERNER_NO_MEMORY;
	struct entry *entry = number == INTERNER_NO_MEMORY ? NULL : vector_at(&cache->entries, number);

	free(key);
	if (!entry || entry->key)
		return entry;
	entry->starts = (struct hash_table)HASH_TABLE_OF(struct hash, SIZE_MAX);
	entry->key = cache->keys.texts.items[number];
	entry->object = *object;
	entry->object.path = keep(cache, object->path);
	entry->object.build_id = keep(cache, object->build_id);
	if (entry->object.path && entry->object.build_id)
		read_entry(cache, entry);
	else
		entry->is_unfit = true;
	return entry;
}

/* The number of frames; NOT_CACHED: unknown. An error voids the entry. */
static size_t recall(struct name_cache *cache, struct entry *entry, uint64_t address,
                     struct symbol_frame *frames, size_t room)
{
	sqlite3_stmt *row = cache->statements[FIND_FRAMES];
	size_t count = 0;
	bool is_known = entry->has_all;

	sqlite3_bind_int64(row, 1, entry->row);
	sqlite3_bind_int64(row, 2, (int64_t)address);
	while (sqlite3_step(row) == SQLITE_ROW && address < (uint64_t)sqlite3_column_int64(row, 0)) {
		is_known = true;
		if (count < room)
			frames[count] = (struct symbol_frame){ .is_inlined = sqlite3_column_int(row, 1),
				                               .function = keep_column(cache, row, 2),
				                               .file = keep_column(cache, row, 3),
				                               .line = sqlite3_column_int(row, 4) };
		count += count < room && (frames[count].function || frames[count].file);
	}
	if (sqlite3_reset(row) == SQLITE_OK)
		return is_known ? count : NOT_CACHED;
	entry->row = 0;
	return NOT_CACHED;
}

/* False: it is there already, or there is no memory. */
static bool add_finding(struct entry *entry, const struct extent *extent, const struct symbol_frame *frames,
                        size_t count)
{
	struct finding finding = { *extent, entry->frames.count, count };
	struct hash key = hash_words(&extent->start, 1);

	if (hash_table_find(&entry->starts, key))
		return false;
	entry->is_unfit |= !hash_table_add(&entry->starts, key);
	for (size_t i = 0; i < count; i++) {
		entry->has_lines |= frames[i].file != NULL;
		entry->is_unfit |= !vector_push(&entry->frames, frames[i]);
	}
	entry->is_unfit |= !vector_push(&entry->findings, finding);
	return !entry->is_unfit;
}

/* By the names alone, because for an address in no unit all units' debug information is read. */
static bool is_in(const char *function, const struct entry *entry, uint64_t address)
{
	const char *found = symbol_name(&entry->object, address);

	return found && strcmp(found, function) == 0;
}

/* From the border of an extent onwards, or backwards. */
static void look_around(struct entry *entry, const char *function, struct extent extent, bool is_onwards)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];

	for (int i = 0; i < AROUND_MAX; i++) {
		const uint64_t address = is_onwards ? extent.end : extent.start - 1;
		size_t count;

		if (!is_in(function, entry, address))
			break;
		count = symbol_frames_around(&entry->object, address, frames, SYMBOL_FRAMES_MAX, &extent);
		if (!add_finding(entry, &extent, frames, count))
			break;
	}
}

static size_t look_up(struct entry *entry, uint64_t address, struct symbol_frame *frames, size_t room)
{
	struct extent extent;
	size_t count;

	consulted_follow(note_file, entry);
	symbol_fetch(&entry->object);
	count = symbol_frames_around(&entry->object, address, frames, room, &extent);
	/* The names of an object without lines are few, or are all stored. */
	if (add_finding(entry, &extent, frames, count) && entry->has_lines && count &&
	    frames[count - 1].function) {
		look_around(entry, frames[count - 1].function, extent, true);
		look_around(entry, frames[count - 1].function, extent, false);
	}
	consulted_follow(NULL, NULL);
	return count;
}

size_t name_cache_frames(void *context, const struct symbol_object *object, uint64_t address,
                         struct symbol_frame *frames, size_t room)
{
	struct name_cache *cache = context;
	struct entry *entry = entry_of(cache, object);
	size_t count = NOT_CACHED;

	if (entry && entry->row)
		count = recall(cache, entry, address, frames, room);
	if (count != NOT_CACHED)
		return count;
	if (entry && !entry->is_unfit)
		return look_up(entry, address, frames, room);
	symbol_fetch(object);
	return symbol_frames(object, address, frames, room);
}

/* --- storing ----------------------------------------------------------------------- */

/* Begins and ends of ranges. */
struct extents {
	VECTOR(uint64_t) list;
	bool is_short; /* no memory */
};

static void add_extents(void *context, const char *name, uint64_t start, uint64_t end)
{
	struct extents *extents = context;

	(void)name;
	extents->is_short |= !vector_push(&extents->list, start) || !vector_push(&extents->list, end);
}

static int compare_extents(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static int store_frame(struct name_cache *cache, int64_t row, const struct extent *extent, size_t level,
                       const struct symbol_frame *frame)
{
	sqlite3_stmt *add = cache->statements[ADD_FRAME];

	sqlite3_bind_int64(add, 1, row);
	sqlite3_bind_int64(add, 2, (int64_t)extent->start);
	sqlite3_bind_int64(add, 3, (int64_t)extent->end);
	sqlite3_bind_int64(add, 4, (int64_t)level);
	sqlite3_bind_int(add, 5, frame->is_inlined);
	sqlite3_bind_text(add, 6, frame->function, -1, SQLITE_STATIC);
	sqlite3_bind_text(add, 7, frame->file, -1, SQLITE_STATIC);
	sqlite3_bind_int(add, 8, frame->line);
	return run(add);
}

/* The sources' ranges may overlap; symbol_name() chooses among them. */
static int store_functions(struct name_cache *cache, const struct entry *entry, int64_t row,
                           const struct extents *extents)
{
	const uint64_t *at = extents->list.items;
	struct symbol_frame frame = { .function = NULL };
	uint64_t start = 0;
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < extents->list.count; i++) {
		const char *next = symbol_name(&entry->object, at[i]);
		if (next == frame.function)
			continue;
		if (frame.function)
			code = store_frame(cache, row, &(struct extent){ start, at[i] }, 0, &frame);
		frame.function = next;
		start = at[i];
	}
	return code;
}

static int store_frames(struct name_cache *cache, const struct entry *entry, int64_t row)
{
	const struct symbol_frame nothing = { .function = NULL };
	int code = SQLITE_OK;

	for (size_t i = 0; i < entry->findings.count; i++) {
		const struct finding *finding = &entry->findings.items[i];
		if (!code && !finding->count)
			code = store_frame(cache, row, &finding->extent, 0, &nothing);
		for (size_t level = 0; !code && level < finding->count; level++)
			code = store_frame(cache, row, &finding->extent, level,
			                   &entry->frames.items[finding->first + level]);
	}
	return code;
}

/* Whether the cache still has the rows that this run read and builds on. */
static bool is_as_read(struct name_cache *cache, const struct entry *entry)
{
	sqlite3_stmt *row = cache->statements[FIND_OBJECT];
	const char *files = NULL;

	sqlite3_bind_text(row, 1, entry->key, -1, SQLITE_STATIC);
	if (entry->row && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int64(row, 0) == entry->row)
		files = (const char *)sqlite3_column_text(row, 3);
	bool same = files && strcmp(files, entry->read) == 0;
	sqlite3_reset(row);
	return same;
}

static int forget(struct name_cache *cache, const struct entry *entry)
{
	sqlite3_stmt *statement = cache->statements[FORGET_FRAMES];

	sqlite3_bind_text(statement, 1, entry->key, -1, SQLITE_STATIC);
	return run(statement);
}

static int store_entry(struct name_cache *cache, const struct entry *entry)
{
	sqlite3_stmt *add = cache->statements[ADD_OBJECT];
	struct extents extents = { 0 };
	bool has_all = symbol_is_read(&entry->object);
	int code = is_as_read(cache, entry) && !has_all ? SQLITE_OK : forget(cache, entry);

	if (has_all)
		symbol_each(&entry->object, add_extents, &extents);
	has_all &= !extents.is_short && extents.list.count <= 2 * FUNCTIONS_MAX;
	if (extents.list.count)
		qsort(extents.list.items, extents.list.count, sizeof(*extents.list.items), compare_extents);
	sqlite3_bind_text(add, 1, entry->key, -1, SQLITE_STATIC);
	sqlite3_bind_text(add, 2, entry->files, -1, SQLITE_STATIC);
	sqlite3_bind_int(add, 3, has_all);
	sqlite3_bind_int(add, 4, entry->has_lines);
	if (!code)
		code = sqlite3_step(add) == SQLITE_ROW ? SQLITE_OK : sqlite3_errcode(cache->db);
	int64_t row = code ? 0 : sqlite3_column_int64(add, 0);
	if (!code && sqlite3_step(add) != SQLITE_DONE)
		code = sqlite3_errcode(cache->db);
	sqlite3_reset(add);
	if (!code)
		code = has_all ? store_functions(cache, entry, row, &extents)
		               : store_frames(cache, entry, row);
	vector_free(&extents.list);
	return code;
}

static bool is_full(struct name_cache *cache)
{
	sqlite3_stmt *size = cache->statements[SIZE];
	bool full = sqlite3_step(size) == SQLITE_ROW && sqlite3_column_int64(size, 0) > BYTES_MAX;

	sqlite3_reset(size);
	return full;
}

/* If no file was opened, no library could read any. */
static bool is_worth_storing(const struct entry *entry)
{
	return entry->findings.count && entry->files && !entry->is_unfit;
}

static int store(struct name_cache *cache)
{
	int code = sqlite3_exec(cache->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

	if (!code && is_full(cache))
		code = sqlite3_exec(cache->db, "DELETE FROM objects; DELETE FROM frames", NULL, NULL, NULL);
	for (size_t i = 0; !code && i < cache->entries.count && !is_full(cache); i++)
		if (is_worth_storing(&cache->entries.items[i]))
			code = store_entry(cache, &cache->entries.items[i]);
	if (!code)
		code = sqlite3_exec(cache->db, "COMMIT", NULL, NULL, NULL);
	if (code)
		sqlite3_exec(cache->db, "ROLLBACK", NULL, NULL, NULL);
	return code;
}

/* --- the file ---------------------------------------------------------------------- */

/* If others could write to the folder, they could plant names. So no other program shares it: the folder
 * queryprof next to it has files that builds fetch, which other users may read. */
static bool make_private(const char *folder)
{
	struct stat status;

	mkdir(folder, 0700);
	return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       (status.st_mode & 077) == 0;
}

/* NULL: none that is private. */
static char *find_folder(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *above = NULL, *folder = NULL;

	if (cache && cache[0] == '/')
		above = strdup(cache);
	else if (home && home[0] == '/')
		above = text_format("%s/.cache", home);
	if (above)
		mkdir(above, 0700);
	folder = above ? text_format("%s/queryprof-names", above) : NULL;
	free(above);
	if (folder && make_private(folder))
		return folder;
	free(folder);
	return NULL;
}

static int open_database(struct name_cache *cache)
{
	int code = sqlite3_open_v2(cache->path, &cache->db,
	                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, "unix");

	if (!code)
		code = sqlite3_busy_timeout(cache->db, LOCK_MS);
	if (!code)
		code = sqlite3_exec(cache->db, schema, NULL, NULL, NULL);
	for (int i = 0; !code && i < STATEMENTS; i++)
		code = sqlite3_prepare_v2(cache->db, statement_sql[i], -1, &cache->statements[i], NULL);
	return code;
}

static void release(struct name_cache *cache, int code)
{
	bool is_damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR;

	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(cache->statements[i]);
	sqlite3_close(cache->db);
	if (is_damaged)
		unlink(cache->path);
	for (size_t i = 0; i < cache->entries.count; i++) {
		free(cache->entries.items[i].files);
		vector_free(&cache->entries.items[i].findings);
		vector_free(&cache->entries.items[i].frames);
		hash_table_free(&cache->entries.items[i].starts);
	}
	vector_free(&cache->entries);
	interner_free(&cache->texts);
	interner_free(&cache->keys);
	debug_copies_use(NULL);
	free(cache->folder);
	free(cache->path);
	free(cache->self);
	free(cache);
}

struct name_cache *name_cache_open(void)
{
	struct name_cache *cache = calloc(1, sizeof(*cache));
	int code = SQLITE_CANTOPEN;
	bool ignored = false;

	if (!cache)
		return NULL;
	cache->folder = find_folder();
	if (cache->folder)
		/* Another format gets another number. */
		cache->path = text_format("%s/names-2.db", cache->folder);
	cache->self = state_of("/proc/self/exe", &ignored);
	if (cache->path && cache->self)
		code = open_database(cache);
	if (!code) {
		debug_copies_use(cache->folder);
		return cache;
	}
	release(cache, code);
	return NULL;
}

void name_cache_close(struct name_cache *cache)
{
	bool has_news = false;

	for (size_t i = 0; cache && i < cache->entries.count; i++)
		has_news |= is_worth_storing(&cache->entries.items[i]);
	if (cache)
		release(cache, has_news ? store(cache) : SQLITE_OK);
}
