/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of the mapped objects, their history, and the code map for the handler.
 *
 * A thread scans the loader's list (scan.c) before it takes the lock, so two threads may have scans
 * of different age. The loader's counters only grow and show which scan is newer; the older one is
 * dropped.
 *
 * Modules are never freed, because a reader may look up an address of a sample long after dlclose().
 * A code map is freed once no handler can be reading it.
 */
#include "modules/modules.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/code_map.h"
#include "base/lock.h"
#include "base/search.h"
#include "handler/unwind/unwind.h"
#include "modules/module_history.h"
#include "modules/module_log.h"
#include "modules/publish.h"
#include "modules/scan.h"

LOCK_DEFINE(lock, LOCK_MODULES);
static struct module_history history;
static struct module_log *module_log; /* NULL: no command reads on when the process is gone */
static struct code_map *map;
static uint64_t seen_adds, seen_subs;
static uint32_t generation; /* of `map`, 0 before the first */

COMPARE_BY(compare_ranges, struct code_range, start)

static bool is_same_object(const struct module *module, const struct scan *scan,
                           const struct scan_object *object)
{
	if (module->start != object->start || module->end != object->end || module->bias != object->bias ||
	    strcmp(module->path, scan->text.items + object->path) != 0 ||
	    strcmp(module->build_id, scan->text.items + object->build_id) != 0)
		return false;
	/* A file may change on disk under its mapping; without a build id that is also all that
	 * distinguishes two builds. */
	return module->build_id[0] != 0 ||
	       (module->file_size == object->file_size && module->mtime_ns == object->mtime_ns);
}

/* NULL: no memory. */
static struct module *make_module(const struct scan *scan, const struct scan_object *object, uint32_t born)
{
	return module_copy(&(struct module){
		.bias = object->bias,
		.start = object->start,
		.end = object->end,
		.born = born,
		.died = UINT32_MAX,
		.file_size = object->file_size,
		.mtime_ns = object->mtime_ns,
		.path = scan->text.items + object->path,
		.build_id = scan->text.items + object->build_id,
	});
}

static struct code_map *make_map(const struct scan *scan)
{
	struct code_map *made = calloc(1, sizeof(*made) + scan->ranges.count * sizeof(made->ranges[0]));

	if (!made)
		return NULL;
	made->count = (uint32_t)scan->ranges.count;
	made->watches = scan->watches;
	memcpy(made->watch, scan->watch, sizeof(made->watch));
	memcpy(made->ranges, scan->ranges.items, scan->ranges.count * sizeof(made->ranges[0]));
	qsort(made->ranges, made->count, sizeof(made->ranges[0]), compare_ranges);
	return made;
}

static uint64_t *make_cache(void)
{
	/* Otherwise the handler would fault twice for each page, at the first look-up and at the
	 * first rule, and the addresses of one stack are in most of the pages. Without memory
	 * there is no cache, only a slower unwinder. */
	void *memory = mmap(NULL, unwind_cache_bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return memory != MAP_FAILED ? memory : NULL;
}

static void free_map(struct code_map *old, bool with_rules)
{
	if (!old || !publish_wait())
		return; /* better lost than freed too early */
	if (with_rules && old->rules)
		munmap(old->rules, unwind_cache_bytes);
	free(old);
}

/* With the lock held: those that were mapped in generation `since` or later. */
static void log_mapped(uint32_t since, uint32_t complete)
{
	if (!module_log)
		return;
	for (size_t i = 0; i < history.mapped.count; i++)
		if (history.mapped.items[i]->born >= since)
			module_log_add(module_log, history.mapped.items[i]);
	module_log_end_generation(module_log, complete);
}

void modules_log_to_nobody_in_child(void)
{
	module_log = NULL;
}

void modules_log_to(struct module_log *log)
{
	lock_acquire(&lock);
	module_log = log;
	for (size_t i = 0; i < history.dead.count; i++)
		module_log_add(log, history.dead.items[i]);
	log_mapped(0, generation);
	lock_release(&lock);
}

/* Makes the scan the newest snapshot, with the lock held. *old is the map that it
 * replaces. ENOMEM leaves everything as it was. */
static int publish_scan(const struct scan *scan, struct code_map **old, bool *changed)
{
	const uint32_t next = generation + 1;
	struct module_map list = { 0 };
	size_t kept = 0;
	struct code_map *made = make_map(scan);

	*old = NULL;
	*changed = false;
	if (!made || !vector_reserve(&history.dead, history.dead.count + history.mapped.count))
		goto no_memory;
	for (size_t i = 0; i < scan->objects.count; i++) {
		const struct module *known = module_map_find(&history.mapped, scan->objects.items[i].start);
		struct module *fresh = NULL;
		if (known && is_same_object(known, scan, &scan->objects.items[i])) {
			kept++;
		} else {
			known = fresh = make_module(scan, &scan->objects.items[i], next);
		}
		if (!known || !module_map_add(&list, known)) {
			free(fresh);
			goto no_memory;
		}
	}
	/* Between two scans an object may have been unmapped and another copy of it mapped in
	 * its place: only the loader's counter shows that. */
	const bool went = kept < history.mapped.count || (generation != 0 && scan->subs != seen_subs);
	seen_adds = scan->adds;
	seen_subs = scan->subs;
	/* A new map drops watched words that were not the counters. */
	if (generation != 0 && !went && kept == scan->objects.count && !code_map_moved(map)) {
		module_map_free(&list);
		free(made);
		return 0;
	}

	for (size_t i = 0, j = 0; i < history.mapped.count; i++) {
		struct module *module = (struct module *)history.mapped.items[i];
		while (j < list.count && list.items[j]->start < module->start)
			j++;
		if (j < list.count && list.items[j] == module)
			continue;
		module->died = next;
		vector_push(&history.dead, module); /* has room */
		if (module_log)
			module_log_add(module_log, module);
	}
	module_map_free(&history.mapped);
	history.mapped = list;
	/* In the log before any sample can name the generation. */
	log_mapped(next, next);

	made->generation = next;
	if (went || !map) {
		made->epoch = next;
		made->rules = make_cache();
	} else {
		made->epoch = map->epoch;
		made->rules = map->rules;
	}
	*old = map;
	*changed = true;
	map = made;
	__atomic_store_n(&generation, next, __ATOMIC_RELEASE);
	publish_code_map(map);
	return 0;

no_memory:
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i]->born == next)
			free((struct module *)list.items[i]);
	module_map_free(&list);
	free(made);
	return ENOMEM;
}

static int refresh(bool *changed)
{
	struct code_map *old = NULL;
	bool with_rules = false;
	struct scan scan;
	int error = scan_modules(&scan);

	*changed = false;
	if (error == 0) {
		lock_acquire(&lock);
		/* With the lock held: if the loader's counters call two scans equally new, the
		 * second one to arrive here knows everything that the first one does. */
		error = scan_add_made_code(&scan);
		if (error == 0 && (generation == 0 || scan.adds + scan.subs >= seen_adds + seen_subs))
			error = publish_scan(&scan, &old, changed);
		with_rules = old && old->rules != map->rules;
		lock_release(&lock);
	}
	scan_free(&scan);
	free_map(old, with_rules);
	return error;
}

int modules_init(void)
{
	bool changed;

	return modules_generation() != 0 ? 0 : refresh(&changed);
}

bool modules_refresh(bool force)
{
	uint64_t adds, subs;
	bool changed, moved;

	if (!force) {
		scan_counters(&adds, &subs);
		lock_acquire(&lock);
		moved = adds != seen_adds || subs != seen_subs || (map && code_map_moved(map));
		lock_release(&lock);
		if (!moved)
			return false;
	}
	/* Without memory the old snapshot stays, and the next call tries again. */
	return refresh(&changed) == 0 && changed;
}

uint32_t modules_generation(void)
{
	return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
}

const struct module *modules_find(uint64_t address, uint32_t in_generation)
{
	lock_acquire(&lock);
	const struct module *found = module_history_find(&history, address, in_generation);
	lock_release(&lock);
	return found;
}

void modules_each(bool (*each)(void *context, const struct module *module), void *context)
{
	/* A copy, so that `each` may call these functions. */
	lock_acquire(&lock);
	const size_t count = history.mapped.count;
	const struct module **copy = malloc((count + 1) * sizeof(*copy));
	if (copy && count != 0)
		memcpy(copy, history.mapped.items, count * sizeof(*copy));
	lock_release(&lock);

	for (size_t i = 0; copy && i < count; i++)
		if (!each(context, copy[i]))
			break;
	free(copy);
}
