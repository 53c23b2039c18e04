/*
 * A sorted copy of the file's table of modules. Rows are never changed or removed,
 * so only those that came since the last look are read; another file (`epoch`)
 * starts anew. Strings live until space_free(): callers hold them.
 */
#include "store/read/space.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "modules/modules.h"
#include "store/control.h"
#include "store/read/reader.h"
#include "store/write/writer.h"

struct placed {
	uint64_t base, extent, elf_start;
	char *path, *build_id;
	uint64_t file_size;
	int64_t mtime_ns;
};

static struct {
	pthread_mutex_t lock;
	uint64_t epoch;
	int64_t last_row;
	size_t count, room;
	struct placed *modules; /* by base */
	size_t string_count, string_room;
	char **strings; /* all ever handed out */
} space = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char *keep_string(struct store_cursor *cursor, int column)
{
	size_t size;
	const char *bytes = store_column_bytes(cursor, column, &size);
	char *copy;

	if (space.string_count == space.string_room) {
		size_t room = space.string_room ? space.string_room * 2 : 64;
		char **strings = realloc(space.strings, room * sizeof *strings);

		if (!strings)
			return NULL;
		space.strings = strings;
		space.string_room = room;
	}
	copy = malloc(size + 1);
	if (!copy)
		return NULL;
	if (size)
		memcpy(copy, bytes, size);
	copy[size] = '\0';
	space.strings[space.string_count++] = copy;
	return copy;
}

static bool add_row(struct store_cursor *cursor)
{
	struct placed module = {
		.base = (uint64_t)store_column_int64(cursor, 1),
		.extent = (uint64_t)store_column_int64(cursor, 2),
		.elf_start = (uint64_t)store_column_int64(cursor, 3),
		.path = keep_string(cursor, 4),
		.build_id = keep_string(cursor, 5),
		.file_size = (uint64_t)store_column_int64(cursor, 6),
		.mtime_ns = store_column_int64(cursor, 7),
	};
	size_t at = space.count;

	if (!module.path || !module.build_id)
		return false;
	if (space.count == space.room) {
		size_t room = space.room ? space.room * 2 : 32;
		struct placed *modules = realloc(space.modules, room * sizeof *modules);

		if (!modules)
			return false;
		space.modules = modules;
		space.room = room;
	}
	for (; at && space.modules[at - 1].base > module.base; at--)
		space.modules[at] = space.modules[at - 1];
	space.modules[at] = module;
	space.count++;
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
		space.count = 0;
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

static const struct placed *find(uint64_t address)
{
	size_t low = 0, high = space.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space.modules[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - space.modules[low - 1].base >= space.modules[low - 1].extent)
		return NULL;
	return &space.modules[low - 1];
}

static bool locate_in_file(uint64_t address, struct store_location *location)
{
	const struct placed *module;

	pthread_mutex_lock(&space.lock);
	if (space.epoch != control_epoch())
		refresh();
	module = find(address);
	if (!module && refresh())
		module = find(address);
	if (module) {
		*location = (struct store_location){
			.path = module->path,
			.build_id = module->build_id,
			.file_size = module->file_size,
			.mtime_ns = module->mtime_ns,
			.address = address - module->base + module->elf_start,
			.offset = address - module->base,
		};
	}
	pthread_mutex_unlock(&space.lock);
	return module != NULL;
}

/* An address of this process in a module that no sample has named, or that lies
 * elsewhere in the file. */
static bool locate_in_process(uint64_t address, struct store_location *location)
{
	const struct module *module = modules_find(address, modules_generation());

	/* It may be new: nobody has looked since it was loaded. */
	if (!module && modules_refresh(false))
		module = modules_find(address, modules_generation());
	if (!module)
		return false;
	*location = (struct store_location){
		.path = module->path,
		.build_id = module->build_id,
		.file_size = module->file_size,
		.mtime_ns = module->mtime_ns,
		.address = address - module->bias,
		.offset = address - module->start,
	};
	return true;
}

bool store_locate(uint64_t address, struct store_location *location)
{
	if (address & STORE_NOWHERE)
		return false;
	return locate_in_file(address, location) || locate_in_process(address, location);
}

/* As WRITE_FIND_MODULE says what is one module. */
static bool is_same(const struct placed *placed, const struct module *module)
{
	if (placed->extent != module->end - module->start || strcmp(placed->build_id, module->build_id))
		return false;
	return module->build_id[0] ||
	       (!strcmp(placed->path, module->path) && placed->file_size == module->file_size &&
	        placed->mtime_ns == module->mtime_ns);
}

/* The module's base in the file; 0: it has none, and could not lie where it is here. */
static uint64_t find_base(const struct module *module)
{
	uint64_t base = module->start;

	for (size_t i = 0; i < space.count; i++) {
		const struct placed *placed = &space.modules[i];

		if (is_same(placed, module))
			return placed->base;
		if (placed->base < module->end && module->start < placed->base + placed->extent)
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
	for (size_t i = 0; i < space.string_count; i++)
		free(space.strings[i]);
	free(space.strings);
	free(space.modules);
	space.strings = NULL;
	space.modules = NULL;
	space.string_count = space.string_room = space.count = space.room = 0;
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
