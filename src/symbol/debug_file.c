/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds separate debug files. The places are those that gdb documents, so that
 * what works there works here.
 *
 * libdwfl, which knows them too, is not used: it maps the files that it opens, and
 * may fetch one from the network.
 */
#include "symbol/debug_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Symbols of one object, unpacked: Fedora's largest take some MB. */
#define EMBEDDED_BYTES_MAX (UINT64_C(64) << 20)

struct search {
	struct elf_image *debug;
	const char *build_id; /* "" when the object has none */
	const char *needed;
	bool is_alternate; /* content for other debug files, without addresses */
	bool has_checksum;
	uint32_t checksum;
};

static bool compute_checksum(const struct elf_image *image, uint32_t *checksum)
{
	unsigned char bytes[4096];
	uint64_t at = 0;
	ssize_t got;
	uLong sum = 0;
	if (!image->libdw->crc32)
		return false;
	while ((got = pread(image->fd, bytes, sizeof(bytes), (off_t)at)) > 0) {
		sum = image->libdw->crc32(sum, bytes, (uInt)got);
		at += (uint64_t)got;
	}
	*checksum = (uint32_t)sum;
	return got == 0;
}

static bool try_file(struct search *search, const char *path)
{
	if (!elf_image_open(search->debug, path))
		return false;
	char build_id[BUILD_ID_TEXT];
	elf_image_build_id(search->debug, build_id);
	uint32_t checksum;
	const Elf64_Shdr *section = elf_image_section(search->debug, search->needed);
	bool good = section && section->sh_type != SHT_NOBITS &&
	            (search->is_alternate || search->debug->header.e_type != ET_REL);
	if (good && search->build_id[0])
		good = strcmp(build_id, search->build_id) == 0;
	else if (good)
		good = search->has_checksum && compute_checksum(search->debug, &checksum) &&
		       checksum == search->checksum;
	if (!good)
		elf_image_close(search->debug);
	return good;
}

__attribute__((format(printf, 2, 3))) static bool try_format(struct search *search, const char *format, ...)
{
	char *path;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&path, format, arguments);
	va_end(arguments);
	bool good = length >= 0 && try_file(search, path);
	if (length >= 0)
		free(path);
	return good;
}

static bool search_build_id(struct search *search, const char *root, int length)
{
	return strlen(search->build_id) >= 4 && try_format(search, "%.*s/.build-id/%.2s/%s.debug", length,
	                                                   root, search->build_id, search->build_id + 2);
}

/* The file name in the link, NULL when there is none. */
static const char *read_link(struct search *search, const struct elf_image *image)
{
	GElf_Word checksum;
	const char *name = image->libdw->dwelf_elf_gnu_debuglink(image->elf, &checksum);
	if (!name || name[0] == 0 || strchr(name, '/'))
		return NULL;
	search->has_checksum = true;
	search->checksum = checksum;
	return name;
}

static int next_root(const char **root, const char **rest)
{
	*root = *rest;
	int length = (int)strcspn(*root, ":");
	*rest += length + ((*root)[length] == ':');
	return length;
}

static bool search_build_ids(struct search *search, const char *debug_path)
{
	const char *root;
	bool found = false;
	for (const char *rest = debug_path; !found && *rest;) {
		int length = next_root(&root, &rest);
		found = length && search_build_id(search, root, length);
	}
	return found;
}

bool debug_file_open(struct elf_image *debug, const struct elf_image *image, const char *path,
                     const char *build_id, const char *debug_path, const char *needed)
{
	struct search search = { .debug = debug, .build_id = build_id, .needed = needed };
	const char *root;
	bool found = search_build_ids(&search, debug_path);
	const char *name = !found && image ? read_link(&search, image) : NULL;
	if (!name)
		return found;
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) : 0;
	found = try_format(&search, "%.*s/%s", folder, path, name);
	if (!found)
		found = try_format(&search, "%.*s/.debug/%s", folder, path, name);
	for (const char *rest = debug_path; !found && *rest;) {
		int length = next_root(&root, &rest);
		if (length)
			found = try_format(&search, "%.*s%.*s/%s", length, root, folder, path, name);
	}
	return found;
}

bool debug_file_open_at(struct elf_image *debug, const char *path, const char *build_id, const char *needed)
{
	struct search search = { .debug = debug, .build_id = build_id, .needed = needed };
	return build_id[0] && try_file(&search, path);
}

bool debug_file_open_alternate(struct elf_image *alternate, const struct elf_image *debug, const char *name,
                               const char *build_id, const char *debug_path)
{
	struct search search = {
		.debug = alternate,
		.build_id = build_id,
		.needed = ".debug_str",
		.is_alternate = true,
	};
	if (!build_id[0])
		return false;
	if (search_build_ids(&search, debug_path))
		return true;
	if (name[0] == '/')
		return try_file(&search, name);
	/* The debug file may have been reached by a link elsewhere. */
	char *folder = debug->path ? realpath(debug->path, NULL) : NULL;
	const char *slash = folder ? strrchr(folder, '/') : NULL;
	bool found = slash && try_format(&search, "%.*s/%s", (int)(slash - folder), folder, name);
	free(folder);
	return found;
}

bool debug_file_open_embedded(struct elf_image *debug, const struct elf_image *image)
{
	const Elf64_Shdr *section = elf_image_section(image, ".gnu_debugdata");
	const Elf_Data *packed = section ? elf_image_data(image, section) : NULL;
	if (!packed || !image->libdw->lzma_stream_buffer_decode)
		return false;
	lzma_ret result = LZMA_BUF_ERROR; /* no room for all of it */
	for (size_t room = 1 << 20; result == LZMA_BUF_ERROR && room <= EMBEDDED_BYTES_MAX; room *= 4) {
		uint64_t memory = EMBEDDED_BYTES_MAX;
		size_t in = 0, size = 0;
		unsigned char *bytes = malloc(room);
		if (!bytes)
			return false;
		result = image->libdw->lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &in,
		                                                 packed->d_size, bytes, &size, room);
		if (result == LZMA_OK)
			return elf_image_adopt(debug, bytes, size);
		free(bytes);
	}
	return false;
}
