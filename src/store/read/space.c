/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted copy of the file's table of modules. Rows are never changed or removed,
 * so only those that came since the last look are read; another file (`epoch`)
 * starts anew. Strings live until space_free(): callers hold them.
 */
#include "store/read/space.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/vector.h"
#include "modules/modules.h"
#include "store/control.h"
#include "store/read/reader.h"

static struct {
	pthread_mutex_t lock;
	uint64_t epoch;
	int64_t last_row;
	struct module_map modules;
	VECTOR(struct module *) known; /* all that were ever handed out */
} space = { .lock = PTHREAD_MUTEX_INITIALIZER };
LOCK_DEFINE_GROUPED(space, LOCK_STORE_SPACE, &space.lock);

/* The column as text; valid until the next step. */
static const char *text_of(struct store_cursor *cursor, int column)
{
	size_t size;
	const char *bytes = store_column_bytes(cursor, column, &size);

	return bytes ? bytes : "";
}

static bool add_row(struct store_cursor *cursor)
{
	const uint64_t base = (uint64_t)store_column_int64(cursor, 1);
	const struct module row = {
		.bias = base - (uint64_t)store_column_int64(cursor, 3),
		.start = base,
		.end = base + (uint64_t)store_column_int64(cursor, 2),
		.file_size = (uint64_t)store_column_int64(cursor, 6),
		.mtime_ns = store_column_int64(cursor, 7),
		.path = text_of(cursor, 4),
		.build_id = text_of(cursor, 5),
		.died = UINT32_MAX,
	};

	struct module *module = module_copy(&row);
	if (!module || !vector_reserve(&space.known, space.known.count + 1) ||
	    !module_map_add(&space.modules, module)) {
		free(module);
		return false;
	}
	vector_push(&space.known, module); /* has room */
	space.last_row = store_column_int64(cursor, 0);
	return true;
}

/* Reads what is new in the file. True when something was. */
static bool refresh(void)
{
	uint64_t epoch = control_epoch();
	struct store_cursor *cursor;
	char *error = NULL;
	bool any = false;

	if (!epoch)
		return false; /* no file is open */
	if (epoch != space.epoch) {
		space.epoch = epoch;
		space.modules.count = 0;
		space.last_row = 0;
	}
	cursor = store_select(store_file_own(),
	                      "SELECT id, base, extent, elf_start, path, build_id, file_size, mtime_ns"
	                      " FROM modules WHERE id > ?1 ORDER BY id",
	                      NULL, &error);
	free(error);
	if (!cursor)
		return false;
	store_bind_int64(cursor, 1, space.last_row);
	while (store_step(cursor) == 1 && add_row(cursor))
		any = true;
	store_close(cursor);
	return any;
}

static const struct module *locate_in_file(uint64_t address)
{
	const struct module *module;

	pthread_mutex_lock(&space.lock);
	if (space.epoch != control_epoch())
		refresh();
	module = module_map_find(&space.modules, address);
	if (!module && refresh())
		module = module_map_find(&space.modules, address);
	pthread_mutex_unlock(&space.lock);
	return module;
}

/* An address of this process in a module that no sample has named, or that lies
 * elsewhere in the file. */
static const struct module *locate_in_process(uint64_t address)
{
	const struct module *module = modules_find(address, modules_generation());

	/* It may be new: the list of modules was not refreshed since it was loaded. */
	if (!module && modules_refresh(false))
		module = modules_find(address, modules_generation());
	return module;
}

const struct module *store_locate(uint64_t address)
{
	if (address & STORE_NOWHERE)
		return NULL;
	const struct module *module = locate_in_file(address);
	return module ? module : locate_in_process(address);
}

/* Compares what WRITE_FIND_MODULE compares. */
static bool is_same(const struct module *placed, const struct module *module)
{
	if (placed->end - placed->start != module->end - module->start ||
	    strcmp(placed->build_id, module->build_id))
		return false;
	return module->build_id[0] ||
	       (!strcmp(placed->path, module->path) && placed->file_size == module->file_size &&
	        placed->mtime_ns == module->mtime_ns);
}

/* The module's base in the file; 0: it has none, and could not lie where it is here. */
static uint64_t find_base(const struct module *module)
{
	uint64_t base = module->start;

	for (size_t i = 0; i < space.modules.count; i++) {
		const struct module *placed = space.modules.items[i];

		if (is_same(placed, module))
			return placed->start;
		if (placed->start < module->end && module->start < placed->end)
			base = 0;
	}
	return base;
}

void store_place(uint64_t *addresses, size_t count, uint32_t generation)
{
	pthread_mutex_lock(&space.lock);
	refresh();
	for (size_t i = 0; i < count; i++) {
		const struct module *module = modules_find(addresses[i], generation);
		bool is_inside = module && addresses[i] >= module->start && addresses[i] < module->end;
		uint64_t base = is_inside ? find_base(module) : 0;

		addresses[i] = base ? addresses[i] - module->start + base
		                    : (addresses[i] & (STORE_NOWHERE - 1)) | STORE_NOWHERE;
	}
	pthread_mutex_unlock(&space.lock);
}

void space_free(void)
{
	pthread_mutex_lock(&space.lock);
	for (size_t i = 0; i < space.known.count; i++)
		free(space.known.items[i]);
	vector_free(&space.known);
	module_map_free(&space.modules);
	space.epoch = 0;
	space.last_row = 0;
	pthread_mutex_unlock(&space.lock);
}

void space_before_fork(void)
{
	pthread_mutex_lock(&space.lock);
}

void space_after_fork(void)
{
	pthread_mutex_unlock(&space.lock);
}
