/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted copy of the file's table of modules. Rows are never changed or removed, so only new rows are read;
 * another file (`epoch`) is read from its beginning. Strings remain valid until space_free(), because callers
 * keep them.
 *
 * Rows are read without the lock: a thread may have to wait long before it can read, and neither fork() nor a
 * thread that needs a known module may wait for that.
 */
#include "store/read/space.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/vector.h"
#include "modules/modules.h"
#include "store/control/control.h"
#include "store/read/reader.h"

/* Under the lock. */
static struct {
	uint64_t epoch;
	int64_t last_row;
	struct module_map modules;
	VECTOR(struct module *) known; /* all that callers have received */
} space;

/* In a child: another thread may have been changing the data, so it is abandoned and read again. */
static void forget(void)
{
	memset(&space, 0, sizeof(space));
}

LOCK_DEFINE(lock, LOCK_STORE_SPACE, .lost = forget);

/* A row that was read and is not yet in the copy. */
struct placed {
	int64_t row;
	struct module *module;
};
typedef VECTOR(struct placed) placed_rows;

/* The column as text; valid until the next step. */
static const char *text_of(struct store_cursor *cursor, int column)
{
	size_t size;
	const char *bytes = store_column_bytes(cursor, column, &size);

	return bytes ? bytes : "";
}

static bool read_row(struct store_cursor *cursor, placed_rows *rows)
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

	struct placed placed = { store_column_int64(cursor, 0), module_copy(&row) };
	if (placed.module && vector_push(rows, placed))
		return true;
	free(placed.module);
	return false;
}

/* With the lock held. */
static bool add_row(const struct placed *placed)
{
	if (!vector_reserve(&space.known, space.known.count + 1) ||
	    !module_map_add(&space.modules, placed->module))
		return false;
	vector_push(&space.known, placed->module); /* the room is reserved */
	space.last_row = placed->row;
	return true;
}

/* Begins a copy of this file, unless the copy is already of this file or a newer one. Returns the copy's last
 * row. */
static int64_t begin_file(uint64_t epoch)
{
	int64_t last_row;

	lock_acquire(&lock);
	if (epoch > space.epoch) {
		space.epoch = epoch;
		space.modules.count = 0;
		space.last_row = 0;
	}
	last_row = space.last_row;
	lock_release(&lock);
	return last_row;
}

/* Adds the rows in order, unless the store has changed to another file. Another thread may already have added
 * the first of them. */
static void add_rows(uint64_t epoch, const placed_rows *rows)
{
	bool is_good;

	lock_acquire(&lock);
	is_good = epoch == space.epoch && epoch == control_epoch();
	for (size_t i = 0; i < rows->count; i++) {
		const struct placed *placed = &rows->items[i];
		bool is_new = placed->row > space.last_row;

		if (is_good && is_new && add_row(placed))
			continue;
		is_good = is_good && !is_new;
		free(placed->module);
	}
	lock_release(&lock);
}

/* Reads the new rows of the file. */
static void refresh(void)
{
	uint64_t epoch = control_epoch();
	placed_rows rows = { 0 };
	struct store_cursor *cursor;
	char *error = NULL;
	int64_t last_row;

	if (!epoch)
		return; /* no file is open */
	last_row = begin_file(epoch);
	cursor = store_select("SELECT id, base, extent, elf_start, path, build_id, file_size, mtime_ns"
	                      " FROM modules WHERE id > ?1 ORDER BY id",
	                      NULL, &error);
	free(error);
	if (!cursor)
		return;
	store_bind_int64(cursor, 1, last_row);
	while (store_step(cursor) == 1 && read_row(cursor, &rows))
		;
	store_close(cursor);
	add_rows(epoch, &rows);
	vector_free(&rows);
}

/* In the copy of the open file, or of the last one. */
static const struct module *find(uint64_t address)
{
	const struct module *module = NULL;
	uint64_t epoch;

	lock_acquire(&lock);
	epoch = control_epoch();
	if (!epoch || epoch == space.epoch)
		module = module_map_find(&space.modules, address);
	lock_release(&lock);
	return module;
}

static const struct module *locate_in_file(uint64_t address)
{
	const struct module *module = find(address);

	if (module)
		return module;
	refresh();
	return find(address);
}

/* For an address of this process in a module that no sample has named, or whose base in the file differs. */
static const struct module *locate_in_process(uint64_t address)
{
	const struct module *module = modules_find(address, modules_generation());

	/* The module may have been loaded after the list of modules was last refreshed. */
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

/* Compares the same properties as WRITE_FIND_MODULE. */
static bool is_same(const struct module *placed, const struct module *module)
{
	if (placed->end - placed->start != module->end - module->start ||
	    strcmp(placed->build_id, module->build_id))
		return false;
	return module->build_id[0] ||
	       (!strcmp(placed->path, module->path) && placed->file_size == module->file_size &&
	        placed->mtime_ns == module->mtime_ns);
}

/* The module's base in the file; 0: it has none, because another module has its addresses. */
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

void store_location(uint64_t *addresses, size_t count, uint32_t generation)
{
	refresh();
	lock_acquire(&lock);
	for (size_t i = 0; i < count; i++) {
		const struct module *module = modules_find(addresses[i], generation);
		bool is_inside = module && addresses[i] >= module->start && addresses[i] < module->end;
		uint64_t base = is_inside ? find_base(module) : 0;

		addresses[i] = base ? addresses[i] - module->start + base
		                    : (addresses[i] & (STORE_NOWHERE - 1)) | STORE_NOWHERE;
	}
	lock_release(&lock);
}

void space_free(void)
{
	lock_acquire(&lock);
	for (size_t i = 0; i < space.known.count; i++)
		free(space.known.items[i]);
	vector_free(&space.known);
	module_map_free(&space.modules);
	space.epoch = 0;
	space.last_row = 0;
	lock_release(&lock);
}
