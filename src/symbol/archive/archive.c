/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the archive of a stripped library and takes names from it.
 *
 * Distributions strip libraries of the names of static functions, but their
 * packages for developers contain the same code as an archive of object files with
 * all names. How a name is proven to be right: match.c.
 */
#include "symbol/archive/archive.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "symbol/archive/match.h"
#include "symbol/archive/read.h"
#include "symbol/archive/side.h"
#include "symbol/table_builder.h"

#define LIBRARY_FOLDER "/usr/lib/x86_64-linux-gnu/"

/* Length of the stem of a library's file name: of "libname.so" or "libname.so.1.2" that
 * of "libname". 0 for any other name. */
static int stem_length(const char *name)
{
	const char *end = strstr(name, ".so");
	return end && (end[3] == 0 || end[3] == '.') ? (int)(end - name) : 0;
}

static bool read_archive(struct code_side *archive, const char *path, const char *name, uint16_t machine)
{
	const struct {
		const char *folder;
		int length;
	} folders[] = {
		{ path, (int)(name - path) },
		{ LIBRARY_FOLDER, (int)strlen(LIBRARY_FOLDER) },
	};
	bool good = false;
	for (size_t i = 0; !good && i < sizeof(folders) / sizeof(folders[0]); i++) {
		char *location = text_format("%.*s%.*s.a", folders[i].length, folders[i].folder,
		                             stem_length(name), name);
		if (!location)
			return false;
		good = side_read_archive(archive, location, machine);
		if (!good)
			side_free(archive);
		free(location);
	}
	return good;
}

static bool add_matches(const struct code_side *object, const struct code_side *archive,
                        const uint32_t *matches, struct symbol_table_builder *builder)
{
	bool good = true;
	for (uint32_t i = 0; good && i < archive->functions.count; i++) {
		const struct code_function *function =
			matches[i] == ARCHIVE_NONE ? NULL : &object->functions.items[matches[i]];
		if (function && !function->name)
			good = symbol_table_builder_add(builder, function->address, function->size,
			                                archive->functions.items[i].name, "");
	}
	return good;
}

bool archive_collect(const struct elf_image *image, const char *path, struct symbol_table_builder *builder,
                     struct why *why)
{
	struct code_side object = { 0 }, archive = { 0 };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int stem = stem_length(name);
	bool good = true;
	if (image->machine != EM_X86_64 || stem == 0)
		return true;
	if (!read_archive(&archive, path, name, image->machine)) {
		why_add(why, "no %.*s.a: install a package such as %.*s-dev", stem, name, stem, name);
		return true;
	}
	uint32_t *matches = side_read_object(&object, image) ? archive_match(&object, &archive) : NULL;
	if (matches)
		good = add_matches(&object, &archive, matches, builder);
	else
		why_add(why, "%.*s.a is of another build", stem, name);
	free(matches);
	side_free(&object);
	side_free(&archive);
	return good;
}
