/*
 * Finds the archive of a stripped library and takes names from it.
 *
 * Distributions strip libraries of the names of static functions, but their
 * packages for developers contain the same code as an archive of object files with
 * all names. How a name is proven to be right: archive_match.c.
 */
#include "symbol/archive/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/archive/parts.h"
#include "symbol/symbol_table.h"

#define LIBRARY_FOLDER "/usr/lib/x86_64-linux-gnu"

/* "<folder>/libname.a" for a path that ends in "libname.so" or "libname.so.1.2". */
static char *archive_path(const char *folder, size_t folder_length, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *end = strstr(name, ".so");
	char *result;
	if (!end || end == name || (end[3] != 0 && end[3] != '.') ||
	    asprintf(&result, "%.*s/%.*s.a", (int)folder_length, folder, (int)(end - name), name) < 0)
		return NULL;
	return result;
}

static bool read_archive(struct code_side *archive, const struct elf_image *image, const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct {
		const char *folder;
		size_t length;
	} folders[] = {
		{ path, slash ? (size_t)(slash - path) : 0 },
		{ LIBRARY_FOLDER, strlen(LIBRARY_FOLDER) },
	};
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char *name = archive_path(folders[i].folder, folders[i].length, path);
		memset(archive, 0, sizeof(*archive));
		bool good = name && side_read_archive(archive, name, image->machine);
		free(name);
		if (good)
			return true;
		side_free(archive);
	}
	memset(archive, 0, sizeof(*archive));
	return false;
}

bool archive_collect(const struct elf_image *image, const char *path, struct symbol_collector *collector)
{
	struct code_side object = { 0 }, archive = { 0 };
	uint32_t *matches = NULL;
	bool good = true;
	if (image->machine == EM_X86_64 && read_archive(&archive, image, path) &&
	    side_read_object(&object, image))
		matches = archive_match(&object, &archive);
	for (uint32_t i = 0; matches && good && i < archive.function_count; i++) {
		const struct code_function *function =
			matches[i] == ARCHIVE_NONE ? NULL : &object.functions[matches[i]];
		if (function && !function->name)
			good = symbol_collector_add(collector, function->address, function->size,
			                            archive.functions[i].name, "");
	}
	free(matches);
	side_free(&object);
	side_free(&archive);
	return good;
}
