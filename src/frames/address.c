/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins an address space with the symbols. See the header.
 */
#include "frames/address.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "modules/module_map.h"
#include "store/store.h"
#include "symbol/symbol.h"

/* The frames that the file has; 0: none. */
static size_t recall(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                     size_t room)
{
	return space->recall ? space->recall(space, address, frames, room) : 0;
}

/* The name of the function that contains the code, NULL if the file has none. */
static const char *recall_name(const struct address_space *space, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t count = recall(space, address, frames, SYMBOL_FRAMES_MAX);
	return count ? frames[count - 1].function : NULL;
}

/* The module that contains the address, and its object; NULL: there is none. */
static const struct module *locate(const struct address_space *space, uint64_t address,
                                   struct symbol_object *object)
{
	const struct module *module = space->locate(space, address);
	if (!module)
		return NULL;
	*object = symbol_object_of(module);
	symbol_fetch(object);
	return module;
}

static char *name_generated(const struct address_space *space, uint64_t address)
{
	return space->name_generated ? space->name_generated(space, address) : NULL;
}

static char *format_offset(const struct module *module, uint64_t address)
{
	const char *slash = strrchr(module->path, '/');
	return text_format("%s+0x%llx", slash ? slash + 1 : module->path,
	                   (unsigned long long)(address - module->start));
}

char *address_symbol(const struct address_space *space, uint64_t address)
{
	struct symbol_object object;
	const char *name = recall_name(space, address);
	if (name)
		return strdup(name);
	const struct module *module = locate(space, address, &object);
	if (!module)
		return name_generated(space, address);
	name = symbol_name(&object, address - module->bias);
	return name ? strdup(name) : format_offset(module, address);
}

char *address_line(const struct address_space *space, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	struct symbol_object object;
	if (recall(space, address, frames, SYMBOL_FRAMES_MAX) && frames[0].file)
		return text_format("%s:%d", frames[0].file, frames[0].line);
	const struct module *module = locate(space, address, &object);
	const char *file;
	int line;
	if (!module)
		return NULL;
	return symbol_line(&object, address - module->bias, &file, &line) ? text_format("%s:%d", file, line)
	                                                                  : strdup(module->path);
}

char *address_build_id(const struct address_space *space, uint64_t address)
{
	const struct module *module = space->locate(space, address);
	return module ? strdup(module->build_id) : NULL;
}

size_t address_frames(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                      size_t room)
{
	struct symbol_frame found[SYMBOL_FRAMES_MAX];
	struct symbol_object object;
	size_t recalled = recall(space, address, frames, room), count;
	if (recalled && frames[0].file)
		return recalled;
	const struct module *module = locate(space, address, &object);
	if (!module)
		return recalled;
	count = symbol_frames(&object, address - module->bias, found,
	                      room < SYMBOL_FRAMES_MAX ? room : SYMBOL_FRAMES_MAX);
	if (!count || (recalled && !found[0].file))
		return recalled;
	memcpy(frames, found, count * sizeof(*found));
	return count;
}

char *address_text(const struct address_space *space, uint64_t address)
{
	char *name = address_symbol(space, address), *text;
	if (!name)
		return text_format("0x%llx", (unsigned long long)(address & ~STORE_NOWHERE));
	text = symbol_demangle(name);
	if (!text)
		return name;
	free(name);
	return text;
}
