/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process may end at any instruction, or write anywhere before it crashes, so an entry is
 * published after it is complete, and the reader trusts no size.
 *
 * A full log remains at its last complete generation. Addresses of later ones are then unknown, and
 * never attributed to an earlier module at the same place.
 */
#include "modules/module_log.h"

#include <stdlib.h>
#include <string.h>

struct module_log {
	uint64_t size;       /* of the whole */
	uint64_t used;       /* bytes of complete entries */
	uint32_t generation; /* the last complete one */
	bool is_full;
	_Alignas(8) char entries[];
};

struct entry {
	struct module module; /* its texts follow: path, build id */
	uint32_t size, path_size, id_size;
	char text[];
};

struct module_log *module_log_make(void *memory, size_t size)
{
	struct module_log *log = memory;

	log->size = size;
	return log;
}

size_t module_log_size(const struct module_log *log)
{
	return sizeof(*log) + __atomic_load_n(&log->used, __ATOMIC_ACQUIRE);
}

void module_log_add(struct module_log *log, const struct module *module)
{
	size_t path_size = strlen(module->path) + 1, id_size = strlen(module->build_id) + 1;
	size_t size = (sizeof(struct entry) + path_size + id_size + 7) & ~(size_t)7;
	struct entry *entry = (struct entry *)(log->entries + log->used);

	log->is_full |= size > log->size - sizeof(*log) - log->used;
	if (log->is_full)
		return;
	entry->module = *module;
	entry->module.path = entry->module.build_id = NULL;
	entry->size = (uint32_t)size;
	entry->path_size = (uint32_t)path_size;
	entry->id_size = (uint32_t)id_size;
	memcpy(entry->text, module->path, path_size);
	memcpy(entry->text + path_size, module->build_id, id_size);
	/* Release: the entry before its publication. */
	__atomic_store_n(&log->used, log->used + size, __ATOMIC_RELEASE);
}

void module_log_end_generation(struct module_log *log, uint32_t generation)
{
	/* Release: its entries before it. */
	if (!log->is_full)
		__atomic_store_n(&log->generation, generation, __ATOMIC_RELEASE);
}

uint32_t module_log_generation(const struct module_log *log)
{
	return __atomic_load_n(&log->generation, __ATOMIC_ACQUIRE);
}

/* --- reading ------------------------------------------------------------------------ */

static bool is_whole(const struct entry *entry, size_t room)
{
	uint64_t texts = (uint64_t)entry->path_size + entry->id_size;

	return room >= sizeof(*entry) && entry->size <= room && entry->size >= sizeof(*entry) + texts &&
	       entry->size % 8 == 0 && entry->path_size != 0 && entry->id_size != 0 &&
	       entry->text[entry->path_size - 1] == '\0' && entry->text[texts - 1] == '\0';
}

/* A module's second entry, with its end, replaces the first. */
static bool apply_entry(const struct entry *entry, struct module_history *history)
{
	struct module_map *mapped = &history->mapped;
	struct module module = entry->module;
	struct module *copy;

	module.path = entry->text;
	module.build_id = entry->text + entry->path_size;
	for (size_t i = 0; i < mapped->count; i++) {
		struct module *known = (struct module *)mapped->items[i];

		if (known->start != module.start || known->born != module.born)
			continue;
		module_map_remove(mapped, i);
		free(known);
		break;
	}
	copy = module_copy(&module);
	if (copy &&
	    (copy->died == UINT32_MAX ? module_map_add(mapped, copy) : vector_push(&history->dead, copy)))
		return true;
	free(copy);
	return false;
}

bool module_log_read(const struct module_log *log, size_t size, struct module_history *history,
                     uint32_t *generation)
{
	size_t used = log->used < size - sizeof(*log) ? log->used : size - sizeof(*log);
	const struct entry *entry;
	bool done = true;

	*generation = module_log_generation(log);
	for (size_t at = 0; done && at < used; at += entry->size) {
		entry = (const struct entry *)(log->entries + at);
		if (!is_whole(entry, used - at))
			break;
		done = apply_entry(entry, history);
	}
	if (!done)
		module_log_free(history);
	return done;
}

void module_log_free(struct module_history *history)
{
	for (size_t i = 0; i < history->mapped.count; i++)
		free((struct module *)history->mapped.items[i]);
	for (size_t i = 0; i < history->dead.count; i++)
		free(history->dead.items[i]);
	module_history_free(history);
}
