/*
 * Joins the store's address space with the symbols. See the header.
 */
#include "trace/address.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/perf_map.h"
#include "store/store.h"
#include "symbol/symbol.h"

static _Atomic(address_locator) locator = store_locate;

void address_use_locator(address_locator locate)
{
	atomic_store_explicit(&locator, locate ? locate : store_locate, memory_order_relaxed);
}

static _Atomic(address_reader) reader;

void address_use_reader(address_reader read)
{
	atomic_store_explicit(&reader, read, memory_order_relaxed);
}

/* What the reader knows; 0: nothing, or there is none. */
static size_t read_frames(uint64_t address, struct symbol_frame *frames, size_t room)
{
	address_reader read = atomic_load_explicit(&reader, memory_order_relaxed);
	return read ? read(address, frames, room) : 0;
}

/* The name of the function whose code it is, NULL when the reader knows none. */
static const char *read_name(uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t count = read_frames(address, frames, SYMBOL_FRAMES_MAX);
	return count ? frames[count - 1].function : NULL;
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
	const char *name = read_name(address);
	if (name)
		return strdup(name);
	if (!locate(address, &location, &object))
		return generated_name(address);
	name = symbol_name(&object, location.address);
	return name ? strdup(name) : format_offset(&location);
}

static char *format_line(const char *file, int line)
{
	char *text;
	return asprintf(&text, "%s:%d", file, line) < 0 ? NULL : text;
}

char *address_line(uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	struct store_location location;
	struct symbol_object object;
	if (read_frames(address, frames, SYMBOL_FRAMES_MAX) && frames[0].file)
		return format_line(frames[0].file, frames[0].line);
	if (!locate(address, &location, &object))
		return NULL;
	const char *file;
	int line;
	return symbol_line(&object, location.address, &file, &line) ? format_line(file, line)
	                                                            : strdup(location.path);
}

char *address_build_id(uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	return locate(address, &location, &object) ? strdup(location.build_id) : NULL;
}

size_t address_frames(uint64_t address, struct symbol_frame *frames, size_t room)
{
	struct symbol_frame found[SYMBOL_FRAMES_MAX];
	struct store_location location;
	struct symbol_object object;
	size_t read = read_frames(address, frames, room), count;
	if ((read && frames[0].file) || !locate(address, &location, &object))
		return read;
	count = symbol_frames(&object, location.address, found,
	                      room < SYMBOL_FRAMES_MAX ? room : SYMBOL_FRAMES_MAX);
	if (!count || (read && !found[0].file))
		return read;
	memcpy(frames, found, count * sizeof(*found));
	return count;
}

char *address_text(uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	const char *name = read_name(address);
	if (!name && !locate(address, &location, &object)) {
		char *text = generated_name(address);
		return text || asprintf(&text, "0x%llx", (unsigned long long)(address & ~STORE_NOWHERE)) >= 0
		               ? text
		               : NULL;
	}
	if (!name)
		name = symbol_name(&object, location.address);
	if (!name)
		return format_offset(&location);
	char *text = symbol_demangle(name);
	return text ? text : strdup(name);
}
