/*
 * Joins the store's address space with the symbols. See the header.
 */
#include "address.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf_map.h"
#include "store/store.h"
#include "symbol.h"

static _Atomic(address_locator) locator = store_locate;

void address_use_locator(address_locator locate)
{
	atomic_store_explicit(&locator, locate ? locate : store_locate, memory_order_relaxed);
}

/* False: in no module. */
static bool locate(uint64_t address, struct store_location *location, struct symbol_object *object)
{
	address_locator ask = atomic_load_explicit(&locator, memory_order_relaxed);
	if (!ask(address, location))
		return false;
	*object = (struct symbol_object){
		.path = location->path,
		.build_id = location->build_id,
		.file_size = location->file_size,
		.mtime_ns = location->mtime_ns,
	};
	symbol_fetch(object);
	return true;
}

static int64_t own_start_time(void)
{
	static _Atomic(int64_t) start;
	static _Atomic(pid_t) process;
	pid_t now = getpid();
	/* Acquire, release: who sees the process sees its start. */
	if (atomic_load_explicit(&process, memory_order_acquire) != now) {
		atomic_store_explicit(&start, store_process_start(), memory_order_relaxed);
		atomic_store_explicit(&process, now, memory_order_release);
	}
	return atomic_load_explicit(&start, memory_order_relaxed);
}

/* The name of an address that lies in no module; NULL when it has none. */
static char *generated_name(uint64_t address)
{
	if (atomic_load_explicit(&locator, memory_order_relaxed) != store_locate)
		return NULL; /* another process's, and nobody says which */
	return perf_map_name(getpid(), own_start_time(), address & ~STORE_NOWHERE);
}

static char *format_offset(const struct store_location *location)
{
	const char *slash = strrchr(location->path, '/');
	char *text;
	if (asprintf(&text, "%s+0x%llx", slash ? slash + 1 : location->path,
	             (unsigned long long)location->offset) < 0)
		return NULL;
	return text;
}

char *address_symbol(uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	if (!locate(address, &location, &object))
		return generated_name(address);
	const char *name = symbol_name(&object, location.address);
	return name ? strdup(name) : format_offset(&location);
}

char *address_line(uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	if (!locate(address, &location, &object))
		return NULL;
	const char *file;
	int line;
	if (!symbol_line(&object, location.address, &file, &line))
		return strdup(location.path);
	char *text;
	return asprintf(&text, "%s:%d", file, line) < 0 ? NULL : text;
}

char *address_build_id(uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	return locate(address, &location, &object) ? strdup(location.build_id) : NULL;
}

size_t address_frames(uint64_t address, struct symbol_frame *frames, size_t room)
{
	struct store_location location;
	struct symbol_object object;
	return locate(address, &location, &object) ?
	       symbol_frames(&object, location.address, frames, room) : 0;
}

char *address_text(uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	if (!locate(address, &location, &object)) {
		char *text = generated_name(address);
		return text || asprintf(&text, "0x%llx", (unsigned long long)address) >= 0 ? text : NULL;
	}
	const char *name = symbol_name(&object, location.address);
	if (!name)
		return format_offset(&location);
	char *text = symbol_demangle(name);
	return text ? text : strdup(name);
}
