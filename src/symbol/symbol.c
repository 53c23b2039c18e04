/*
 * The cache of objects.
 *
 * Look-ups take no lock: objects are never removed while look-ups go on (see
 * symbol_forget), are put into their bucket with a release store, and their
 * symbols are complete by then. One lock orders those who load an object, another
 * one those who ask for lines: elfutils is not made for threads that share a file,
 * and libdw goes on reading the DWARF at each question. Neither is held while
 * something comes over the network.
 *
 * Archives take long to match, so that is left until an address has no other name.
 */
#include "symbol/symbol.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "symbol/debug_file.h"
#include "symbol/debuginfod.h"
#include "symbol/elf_image.h"
#include "symbol/lines.h"
#include "symbol/perf_map.h"
#include "symbol/symbol_table.h"

#define BUCKETS 1024u
#define VDSO_PATH "[vdso]"

/* Where debug files are searched. Never freed: an object that was loaded with other
 * folders stays as it is, since somebody may be looking at it. */
struct debug_path {
	struct debug_path *next;
	char folders[];
};

struct object {
	struct object *next;
	uint64_t hash;
	struct symbol_object key;            /* strings are ours */
	const struct debug_path *debug_path; /* part of the key */
	struct symbol_table *table;          /* NULL: nothing to tell */
	atomic_bool has_archived;            /* or it was found that there are none; then never again */
	struct symbol_table *archived;
	/* Under lines_lock. */
	bool lines_tried;
	struct lines *lines;
};

static _Atomic(struct object *) buckets[BUCKETS];
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static struct debug_path default_path = { .folders = SYMBOL_DEBUG_PATH };
static struct debug_path *debug_paths = &default_path; /* under load_lock */
static _Atomic(const struct debug_path *) debug_path = &default_path;

/* --- the object's file --------------------------------------------------------- */

/* Opens the very object that was mapped, not what lies at its path by now. */
static bool open_object(const struct symbol_object *object, struct elf_image *image)
{
	if (strcmp(object->path, VDSO_PATH) == 0) {
		const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
		if (!vdso || !elf_image_open_memory(image, vdso))
			return false;
	} else if (!elf_image_open(image, object->path)) {
		return false;
	}
	bool same;
	if (object->build_id[0]) {
		char build_id[BUILD_ID_TEXT];
		elf_image_build_id(image, build_id);
		same = strcmp(build_id, object->build_id) == 0;
	} else {
		same = object->file_size != 0 && object->file_size == image->size &&
		       object->mtime_ns == image->mtime_ns;
	}
	same = same && image->header.e_type != ET_REL;
	if (!same)
		elf_image_close(image);
	return same;
}

static bool open_debug_file(const struct symbol_object *object, const char *folders,
                            const struct elf_image *image, struct elf_image *debug, const char *needed)
{
	if (debug_file_open(debug, image, object->path, object->build_id, folders, needed))
		return true;
	const char *fetched = debuginfod_path(object->build_id);
	return fetched && debug_file_open_at(debug, fetched, object->build_id, needed);
}

/* *is_stripped: it could have more names. */
static struct symbol_table *load_table(const struct symbol_object *object, const char *folders,
                                       bool *is_stripped)
{
	struct elf_image image, debug;
	bool has_image = open_object(object, &image), has_debug = false;
	*is_stripped = !has_image || !elf_image_section_of_type(&image, SHT_SYMTAB);
	if (*is_stripped) {
		has_debug = open_debug_file(object, folders, has_image ? &image : NULL, &debug, ".symtab");
		if (!has_debug && has_image)
			has_debug = debug_file_open_embedded(&debug, &image);
		*is_stripped = has_image && !has_debug;
	}
	struct symbol_table *table = NULL;
	if (has_image || has_debug)
		table = symbol_table_create(has_image ? &image : NULL, has_debug ? &debug : NULL);
	if (has_debug)
		elf_image_close(&debug);
	if (has_image)
		elf_image_close(&image);
	return table;
}

static struct symbol_table *load_archived(const struct symbol_object *object)
{
	struct elf_image image;
	if (!open_object(object, &image))
		return NULL;
	struct symbol_table *table = symbol_table_create_archived(&image, object->path);
	elf_image_close(&image);
	return table;
}

static bool has_debug_info(const struct elf_image *image)
{
	return elf_image_section(image, ".debug_info") || elf_image_section(image, ".zdebug_info");
}

static struct lines *load_lines(const struct symbol_object *object, const char *folders)
{
	struct elf_image image, debug;
	struct lines *lines = NULL;
	bool has_image = open_object(object, &image);
	if (has_image && has_debug_info(&image))
		lines = lines_open(&image, folders);
	if (!lines && open_debug_file(object, folders, has_image ? &image : NULL, &debug, ".debug_info")) {
		lines = lines_open(&debug, folders);
		elf_image_close(&debug);
	}
	if (has_image)
		elf_image_close(&image);
	return lines;
}

/* Whether names and lines are all there. */
static bool has_debug_file(const struct symbol_object *object, const char *folders)
{
	struct elf_image image, debug;
	bool has_image = open_object(object, &image);
	bool found = has_image && has_debug_info(&image);
	if (!found && debug_file_open(&debug, has_image ? &image : NULL, object->path, object->build_id,
	                              folders, ".debug_info")) {
		elf_image_close(&debug);
		found = true;
	}
	if (has_image)
		elf_image_close(&image);
	return found;
}

/* --- the cache ----------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* A build id says all by itself, but an object without readable file at one path
 * may have one at another: both are part of the key. */
static uint64_t hash_key(const struct symbol_object *key)
{
	uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), key->path);
	hash = hash_text(hash, key->build_id);
	return hash ^ key->file_size ^ (uint64_t)key->mtime_ns;
}

static bool is_key(const struct symbol_object *a, const struct symbol_object *b)
{
	return a->file_size == b->file_size && a->mtime_ns == b->mtime_ns &&
	       strcmp(a->build_id, b->build_id) == 0 && strcmp(a->path, b->path) == 0;
}

static _Atomic(struct object *) *bucket_of(uint64_t hash)
{
	return &buckets[(hash ^ (hash >> 32)) % BUCKETS];
}

static struct object *find_object(const struct symbol_object *key, uint64_t hash)
{
	/* Relaxed: only its address counts here. */
	const struct debug_path *folders = atomic_load_explicit(&debug_path, memory_order_relaxed);
	/* Acquire: pairs with the release in add_object, whose table we then read. */
	struct object *object = atomic_load_explicit(bucket_of(hash), memory_order_acquire);
	while (object &&
	       (object->hash != hash || object->debug_path != folders || !is_key(&object->key, key)))
		object = object->next;
	return object;
}

static void free_object(struct object *object)
{
	symbol_table_destroy(object->table);
	symbol_table_destroy(object->archived);
	lines_close(object->lines);
	free((char *)object->key.path);
	free((char *)object->key.build_id);
	free(object);
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
	object->debug_path = atomic_load_explicit(&debug_path, memory_order_relaxed);
	bool is_stripped;
	object->table = load_table(key, object->debug_path->folders, &is_stripped);
	atomic_init(&object->has_archived, !is_stripped);
	_Atomic(struct object *) *bucket = bucket_of(hash);
	object->next = atomic_load_explicit(bucket, memory_order_relaxed);
	atomic_store_explicit(bucket, object, memory_order_release);
	return object;
}

static struct object *get_object(const struct symbol_object *key)
{
	uint64_t hash = hash_key(key);
	struct object *object = find_object(key, hash);
	if (object)
		return object;
	pthread_mutex_lock(&load_lock);
	object = find_object(key, hash);
	if (!object)
		object = add_object(key, hash);
	pthread_mutex_unlock(&load_lock);
	return object;
}

/* NULL: there are none. */
static const struct symbol_table *get_archived(struct object *object)
{
	/* Acquire: pairs with the release below. */
	if (!atomic_load_explicit(&object->has_archived, memory_order_acquire)) {
		pthread_mutex_lock(&load_lock);
		if (!atomic_load_explicit(&object->has_archived, memory_order_relaxed)) {
			object->archived = load_archived(&object->key);
			atomic_store_explicit(&object->has_archived, true, memory_order_release);
		}
		pthread_mutex_unlock(&load_lock);
	}
	return object->archived;
}

static const char *find_archived(struct object *object, uint64_t address)
{
	const struct symbol_table *archived = get_archived(object);
	return archived ? symbol_table_find(archived, address) : NULL;
}

static const char *find_name(struct object *object, uint64_t address)
{
	const char *name = object->table ? symbol_table_find(object->table, address) : NULL;
	return name ? name : find_archived(object, address);
}

const char *symbol_name(const struct symbol_object *object, uint64_t address)
{
	struct object *cached = get_object(object);
	return cached ? find_name(cached, address) : NULL;
}

void symbol_each(const struct symbol_object *object,
                 void (*each)(void *context, const char *name, uint64_t start, uint64_t end), void *context)
{
	struct object *cached = get_object(object);
	const struct symbol_table *archived = cached ? get_archived(cached) : NULL;
	if (cached && cached->table)
		symbol_table_each(cached->table, each, context);
	if (archived)
		symbol_table_each(archived, each, context);
}

/* Under lines_lock. NULL when there are none. */
static struct lines *get_lines(struct object *object)
{
	if (!object->lines_tried) {
		object->lines = load_lines(&object->key, object->debug_path->folders);
		object->lines_tried = true;
	}
	return object->lines;
}

bool symbol_line(const struct symbol_object *object, uint64_t address, const char **file, int *line)
{
	struct object *cached = get_object(object);
	if (!cached)
		return false;
	pthread_mutex_lock(&lines_lock);
	struct lines *lines = get_lines(cached);
	bool found = lines && lines_find(lines, address, file, line);
	pthread_mutex_unlock(&lines_lock);
	return found;
}

size_t symbol_frames(const struct symbol_object *object, uint64_t address, struct symbol_frame *frames,
                     size_t room)
{
	struct object *cached = get_object(object);
	if (!cached || room == 0)
		return 0;
	pthread_mutex_lock(&lines_lock);
	struct lines *lines = get_lines(cached);
	size_t count = lines ? lines_frames(lines, address, frames, room) : 0;
	pthread_mutex_unlock(&lines_lock);
	/* The symbol table knows more about the code than the source does: parts that the
	 * compiler split off or made for certain arguments have names of their own. */
	const char *name = find_name(cached, address);
	if (name && count == 0)
		frames[count++] = (struct symbol_frame){ .function = name };
	else if (name)
		frames[count - 1].function = name;
	return count;
}

void symbol_fetch(const struct symbol_object *object)
{
	if (!object->build_id[0] || !debuginfod_is_wanted() || find_object(object, hash_key(object)))
		return;
	/* Acquire: pairs with the release of who added it. */
	const struct debug_path *folders = atomic_load_explicit(&debug_path, memory_order_acquire);
	if (!has_debug_file(object, folders->folders))
		debuginfod_fetch(object->build_id);
}

/* --- all of it ------------------------------------------------------------------ */

static void lock_all(void)
{
	pthread_mutex_lock(&load_lock);
	pthread_mutex_lock(&lines_lock);
}

static void unlock_all(void)
{
	pthread_mutex_unlock(&lines_lock);
	pthread_mutex_unlock(&load_lock);
}

void symbol_forget(void)
{
	lock_all();
	for (size_t i = 0; i < BUCKETS; i++) {
		struct object *object = atomic_exchange_explicit(&buckets[i], NULL, memory_order_acq_rel);
		while (object) {
			struct object *next = object->next;
			free_object(object);
			object = next;
		}
	}
	unlock_all();
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
	pthread_mutex_lock(&load_lock);
	struct debug_path *path = find_path(folders);
	if (!path)
		path = add_path(folders);
	if (path)
		atomic_store_explicit(&debug_path, path, memory_order_release);
	pthread_mutex_unlock(&load_lock);
	return path != NULL;
}

void symbol_before_fork(void)
{
	lock_all();
	perf_map_before_fork();
}

/* The locks belong to the thread that forked. */
void symbol_after_fork_parent(void)
{
	perf_map_after_fork();
	unlock_all();
}

void symbol_after_fork_child(void)
{
	debuginfod_after_fork_child();
	symbol_after_fork_parent();
}
