/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of objects.
 *
 * A look-up takes no lock: no object is removed while look-ups go on (see
 * symbol_forget), and a thread publishes an object, and each stage of its names, with a
 * release store once they are complete. load_lock orders the threads that read an
 * object, lines_lock those that look for lines: elfutils does not allow two threads in
 * one file, and libdw reads the DWARF at every look-up. No thread holds either of them
 * while it waits for the network.
 */
#include "symbol/symbol.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "queryprof.h"
#include "settings/setting.h"
#include "symbol/debuginfod.h"
#include "symbol/lines.h"
#include "symbol/sources.h"
#include "symbol/symbol_table.h"

#define BUCKETS 1024u

/* Where debug files are searched. Never freed: an object that was loaded with other
 * folders stays as it is, since another thread may be reading it. */
struct debug_path {
	struct debug_path *next;
	char folders[];
};

struct object {
	struct object *next;
	uint64_t hash;
	struct symbol_object key;            /* owns its strings */
	const struct debug_path *debug_path; /* part of the key */
	/* Those of each stage that was read, NULL where it gave none. Written under
	 * load_lock, before the number of stages is. */
	struct symbol_table *tables[NAME_STAGES];
	unsigned stages;          /* atomic */
	struct names_found found; /* under load_lock */
	/* Under lines_lock. */
	bool lines_tried;
	struct lines *lines;
};

static struct object *buckets[BUCKETS]; /* atomic */
LOCK_DEFINE(load_lock, LOCK_SYMBOL_LOAD);
static void forget_lines(void);
LOCK_DEFINE(lines_lock, LOCK_SYMBOL_LINES, .lost = forget_lines);
static struct debug_path default_path = { .folders = SYMBOL_DEBUG_PATH };
static struct debug_path *debug_paths = &default_path;      /* under load_lock */
static const struct debug_path *debug_path = &default_path; /* atomic */

/* --- the cache ----------------------------------------------------------------- */

/* A build id says all by itself, but an object without readable file at one path
 * may have one at another: both are part of the key. */
static uint64_t hash_key(const struct symbol_object *key)
{
	const uint64_t words[] = { hash_bytes(key->path, strlen(key->path)).first,
		                   hash_bytes(key->build_id, strlen(key->build_id)).first, key->file_size,
		                   (uint64_t)key->mtime_ns };
	return hash_words(words, 4).first;
}

static bool is_key(const struct symbol_object *a, const struct symbol_object *b)
{
	return a->file_size == b->file_size && a->mtime_ns == b->mtime_ns &&
	       strcmp(a->build_id, b->build_id) == 0 && strcmp(a->path, b->path) == 0;
}

static struct object **bucket_of(uint64_t hash)
{
	return &buckets[hash % BUCKETS];
}

static struct object *find_object(const struct symbol_object *key, uint64_t hash)
{
	/* Relaxed: only its address counts here. */
	const struct debug_path *folders = __atomic_load_n(&debug_path, __ATOMIC_RELAXED);
	/* Acquire: pairs with the release in add_object, whose table is then read. */
	struct object *object = __atomic_load_n(bucket_of(hash), __ATOMIC_ACQUIRE);
	while (object &&
	       (object->hash != hash || object->debug_path != folders || !is_key(&object->key, key)))
		object = object->next;
	return object;
}

static void free_object(struct object *object)
{
	for (int stage = 0; stage < NAME_STAGES; stage++)
		symbol_table_destroy(object->tables[stage]);
	lines_close(object->lines);
	free((char *)object->key.path);
	free((char *)object->key.build_id);
	free(object);
}

/* Under load_lock, one stage after the other. */
static void read_stage(struct object *object, enum name_stage stage)
{
	object->tables[stage] =
		sources_read_names(&object->key, object->debug_path->folders, stage, &object->found);
	/* Release: pairs with the acquire in get_table(), whose table is read then. */
	__atomic_store_n(&object->stages, stage + 1u, __ATOMIC_RELEASE);
}

static struct object *add_object(const struct symbol_object *key, uint64_t hash)
{
	struct object *object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	object->hash = hash;
	object->key = *key;
	object->key.path = strdup(key->path);
	object->key.build_id = strdup(key->build_id);
	if (!object->key.path || !object->key.build_id) {
		free_object(object);
		return NULL;
	}
	object->debug_path = __atomic_load_n(&debug_path, __ATOMIC_RELAXED);
	read_stage(object, NAMES_AT_ONCE);
	struct object **bucket = bucket_of(hash);
	object->next = __atomic_load_n(bucket, __ATOMIC_RELAXED);
	__atomic_store_n(bucket, object, __ATOMIC_RELEASE);
	return object;
}

static struct object *get_object(const struct symbol_object *key)
{
	uint64_t hash = hash_key(key);
	struct object *object = find_object(key, hash);
	if (object)
		return object;
	lock_acquire(&load_lock);
	object = find_object(key, hash);
	if (!object)
		object = add_object(key, hash);
	lock_release(&load_lock);
	return object;
}

/* The names of a stage, read by the first thread that needs them; NULL: there are none. */
static const struct symbol_table *get_table(struct object *object, enum name_stage stage)
{
	/* Acquire: pairs with the release in read_stage(). */
	if (__atomic_load_n(&object->stages, __ATOMIC_ACQUIRE) <= stage) {
		lock_acquire(&load_lock);
		if (__atomic_load_n(&object->stages, __ATOMIC_RELAXED) <= stage)
			read_stage(object, stage);
		lock_release(&load_lock);
	}
	return object->tables[stage];
}

static const char *find_name(struct object *object, uint64_t address, struct extent *extent)
{
	const char *name = NULL;
	for (int stage = 0; !name && stage < NAME_STAGES; stage++) {
		const struct symbol_table *table = get_table(object, (enum name_stage)stage);
		name = table ? symbol_table_find(table, address, extent) : NULL;
	}
	return name;
}

const char *symbol_name(const struct symbol_object *object, uint64_t address)
{
	struct object *cached = get_object(object);
	struct extent ignored = EXTENT_ALL;
	return cached ? find_name(cached, address, &ignored) : NULL;
}

void symbol_each(const struct symbol_object *object,
                 void (*each)(void *context, const char *name, uint64_t start, uint64_t end), void *context)
{
	struct object *cached = get_object(object);
	for (int stage = 0; cached && stage < NAME_STAGES; stage++) {
		const struct symbol_table *table = get_table(cached, (enum name_stage)stage);
		if (table)
			symbol_table_each(table, each, context);
	}
}

/* Under lines_lock. NULL when there are none. */
static struct lines *get_lines(struct object *object)
{
	if (!object->lines_tried) {
		object->lines = sources_read_lines(&object->key, object->debug_path->folders);
		object->lines_tried = true;
	}
	return object->lines;
}

bool symbol_line(const struct symbol_object *object, uint64_t address, const char **file, int *line)
{
	struct object *cached = get_object(object);
	if (!cached)
		return false;
	struct extent ignored = EXTENT_ALL;
	lock_acquire(&lines_lock);
	struct lines *lines = get_lines(cached);
	bool found = lines && lines_find(lines, address, file, line, &ignored);
	lock_release(&lines_lock);
	return found;
}

size_t symbol_frames(const struct symbol_object *object, uint64_t address, struct symbol_frame *frames,
                     size_t room)
{
	struct extent ignored;
	return symbol_frames_around(object, address, frames, room, &ignored);
}

size_t symbol_frames_around(const struct symbol_object *object, uint64_t address, struct symbol_frame *frames,
                            size_t room, struct extent *extent)
{
	struct object *cached = get_object(object);
	*extent = cached ? EXTENT_ALL : (struct extent){ address, address + 1 };
	if (!cached || room == 0)
		return 0;
	lock_acquire(&lines_lock);
	struct lines *lines = get_lines(cached);
	size_t count = lines ? lines_frames(lines, address, frames, room, extent) : 0;
	lock_release(&lines_lock);
	/* The symbol table knows more about the code than the source does: parts that the
	 * compiler split off or made for certain arguments have names of their own. */
	const char *name = find_name(cached, address, extent);
	if (name && count == 0)
		frames[count++] = (struct symbol_frame){ .function = name };
	else if (name)
		frames[count - 1].function = name;
	return count;
}

bool symbol_is_read(const struct symbol_object *object)
{
	struct object *cached = find_object(object, hash_key(object));
	/* Acquire: as in get_table(). */
	if (!cached || __atomic_load_n(&cached->stages, __ATOMIC_ACQUIRE) < NAME_STAGES)
		return false;
	lock_acquire(&lines_lock);
	bool has_none = cached->lines_tried && !cached->lines;
	lock_release(&lines_lock);
	return has_none;
}

void symbol_fetch(const struct symbol_object *object)
{
	if (!object->build_id[0] || !debuginfod_is_wanted() || find_object(object, hash_key(object)))
		return;
	/* Acquire: pairs with the release of the thread that added it. */
	const struct debug_path *folders = __atomic_load_n(&debug_path, __ATOMIC_ACQUIRE);
	struct why ignored = { "" };
	if (!sources_lines_from(object, folders->folders, &ignored))
		debuginfod_fetch(object->build_id);
}

/* --- for people ------------------------------------------------------------------- */

bool symbol_describe(const char *path, const char *build_id, struct symbol_description *description)
{
	struct symbol_object key = { .path = path, .build_id = build_id };
	struct why names = { "" }, lines = { "" }, both = { "" };
	struct stat status;
	if (!build_id[0] && stat(path, &status) == 0) {
		key.file_size = (uint64_t)status.st_size;
		key.mtime_ns = (int64_t)ns_of_timespec(status.st_mtim);
	}
	struct object *object = get_object(&key);
	if (!object)
		return false;
	get_table(object, NAMES_LATE);
	lock_acquire(&load_lock);
	description->names_from = sources_best(&object->found);
	if (!object->found.has_locals)
		names = object->found.why_not;
	lock_release(&load_lock);
	description->lines_from = sources_lines_from(&key, object->debug_path->folders, &lines);
	if (names.text[0])
		why_add(&both, "names: %s", names.text);
	if (!description->lines_from)
		why_add(&both, "lines: %s", lines.text);
	memcpy(description->why_not, both.text, sizeof(both.text));
	return true;
}

/* --- all of it ------------------------------------------------------------------ */

void symbol_forget(void)
{
	lock_acquire(&load_lock);
	lock_acquire(&lines_lock);
	for (size_t i = 0; i < BUCKETS; i++) {
		struct object *object = __atomic_exchange_n(&buckets[i], NULL, __ATOMIC_ACQ_REL);
		while (object) {
			struct object *next = object->next;
			free_object(object);
			object = next;
		}
	}
	lock_release(&lines_lock);
	lock_release(&load_lock);
}

static struct debug_path *find_path(const char *folders)
{
	struct debug_path *path = debug_paths;
	while (path && strcmp(path->folders, folders) != 0)
		path = path->next;
	return path;
}

static struct debug_path *add_path(const char *folders)
{
	size_t size = strlen(folders) + 1;
	struct debug_path *path = malloc(sizeof(*path) + size);
	if (path) {
		memcpy(path->folders, folders, size);
		path->next = debug_paths;
		debug_paths = path;
	}
	return path;
}

bool symbol_set_debug_path(const char *folders)
{
	lock_acquire(&load_lock);
	struct debug_path *path = find_path(folders);
	if (!path)
		path = add_path(folders);
	if (path)
		__atomic_store_n(&debug_path, path, __ATOMIC_RELEASE);
	lock_release(&load_lock);
	return path != NULL;
}

static int apply_debug_path(const struct setting_value *value, char **reason)
{
	(void)reason;
	return symbol_set_debug_path(value->text) ? QP_OK : QP_NOMEM;
}

SETTING_TEXT(debug_path_text, SETTING_IS_PATHS, SETTING_PATH_BYTES, SYMBOL_DEBUG_PATH, .name = "debug_path",
             .apply = apply_debug_path,
             .description = "Folders with separate debug files, for names and lines; separated by colons");

const char *symbol_debug_path(void)
{
	/* Acquire: pairs with the release in symbol_set_debug_path(). */
	return __atomic_load_n(&debug_path, __ATOMIC_ACQUIRE)->folders;
}

/* A thread that is not in this child was reading lines, and may have left any of them half
 * read: they are read again, from files opened again. */
static void forget_lines(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct object *object = __atomic_load_n(&buckets[i], __ATOMIC_RELAXED); object;
		     object = object->next) {
			object->lines_tried = false;
			object->lines = NULL;
		}
}
