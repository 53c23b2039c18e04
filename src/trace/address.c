/*
 * Joins an address space with the symbols. See the header.
 */
#include "trace/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "symbol/symbol.h"

/* The frames that the file has; 0: none. */
static size_t recall(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                     size_t room)
{
	return space->recall ? space->recall(space, address, frames, room) : 0;
}

/* The name of the function whose code it is, NULL when the file has none. */
static const char *recall_name(const struct address_space *space, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t count = recall(space, address, frames, SYMBOL_FRAMES_MAX);
	return count ? frames[count - 1].function : NULL;
}

/* False: in no module. */
static bool locate(const struct address_space *space, uint64_t address, struct store_location *location,
                   struct symbol_object *object)
{
	if (!space->locate(space, address, location))
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

static char *name_generated(const struct address_space *space, uint64_t address)
{
	return space->name_generated ? space->name_generated(space, address) : NULL;
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

char *address_symbol(const struct address_space *space, uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	const char *name = recall_name(space, address);
	if (name)
		return strdup(name);
	if (!locate(space, address, &location, &object))
		return name_generated(space, address);
	name = symbol_name(&object, location.address);
	return name ? strdup(name) : format_offset(&location);
}

static char *format_line(const char *file, int line)
{
	char *text;
	return asprintf(&text, "%s:%d", file, line) < 0 ? NULL : text;
}

char *address_line(const struct address_space *space, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	struct store_location location;
	struct symbol_object object;
	if (recall(space, address, frames, SYMBOL_FRAMES_MAX) && frames[0].file)
		return format_line(frames[0].file, frames[0].line);
	if (!locate(space, address, &location, &object))
		return NULL;
	const char *file;
	int line;
	return symbol_line(&object, location.address, &file, &line) ? format_line(file, line)
	                                                            : strdup(location.path);
}

char *address_build_id(const struct address_space *space, uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	return locate(space, address, &location, &object) ? strdup(location.build_id) : NULL;
}

size_t address_frames(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                      size_t room)
{
	struct symbol_frame found[SYMBOL_FRAMES_MAX];
	struct store_location location;
	struct symbol_object object;
	size_t recalled = recall(space, address, frames, room), count;
	if ((recalled && frames[0].file) || !locate(space, address, &location, &object))
		return recalled;
	count = symbol_frames(&object, location.address, found,
	                      room < SYMBOL_FRAMES_MAX ? room : SYMBOL_FRAMES_MAX);
	if (!count || (recalled && !found[0].file))
		return recalled;
	memcpy(frames, found, count * sizeof(*found));
	return count;
}

char *address_text(const struct address_space *space, uint64_t address)
{
	struct store_location location;
	struct symbol_object object;
	const char *name = recall_name(space, address);
	if (!name && !locate(space, address, &location, &object)) {
		char *text = name_generated(space, address);
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
