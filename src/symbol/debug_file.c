/*
 * Finds separate debug files. The places are those that gdb documents, so that
 * whatever works there works here.
 */
#include "debug_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
	struct elf_image *debug;
	const char *build_id; /* "" when the object has none */
	const char *needed;
	bool has_checksum;
	uint32_t checksum;
};

/* The CRC-32 of zlib and PNG, as .gnu_debuglink wants it. */
static bool compute_checksum(const struct elf_image *image, uint32_t *checksum)
{
	uint32_t table[256];
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;
		for (int bit = 0; bit < 8; bit++)
			value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0);
		table[i] = value;
	}
	const uint64_t step = 1 << 20;
	uint32_t sum = UINT32_MAX;
	for (uint64_t at = 0; at < image->size; at += step) {
		uint64_t size = image->size - at < step ? image->size - at : step;
		unsigned char *bytes = elf_image_read(image, at, size);
		if (!bytes)
			return false;
		for (uint64_t i = 0; i < size; i++)
			sum = (sum >> 8) ^ table[(sum ^ bytes[i]) & 255];
		free(bytes);
	}
	*checksum = ~sum;
	return true;
}

static bool try_file(struct search *search, const char *path)
{
	if (!elf_image_open(search->debug, path))
		return false;
	char build_id[BUILD_ID_TEXT];
	elf_image_build_id(search->debug, build_id);
	uint32_t checksum;
	const Elf64_Shdr *section = elf_image_section(search->debug, search->needed);
	bool good = section && section->sh_type != SHT_NOBITS;
	if (good && search->build_id[0])
		good = strcmp(build_id, search->build_id) == 0;
	else if (good)
		good = search->has_checksum && compute_checksum(search->debug, &checksum) &&
		       checksum == search->checksum;
	if (!good)
		elf_image_close(search->debug);
	return good;
}

__attribute__((format(printf, 2, 3)))
static char *try_format(struct search *search, const char *format, ...)
{
	char *path;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&path, format, arguments);
	va_end(arguments);
	if (length < 0)
		return NULL;
	if (try_file(search, path))
		return path;
	free(path);
	return NULL;
}

static char *search_build_id(struct search *search, const char *root, int length)
{
	if (strlen(search->build_id) < 4)
		return NULL;
	return try_format(search, "%.*s/.build-id/%.2s/%s.debug", length, root, search->build_id,
	                  search->build_id + 2);
}

/* The link's content: a file name, zeros up to a multiple of four, the checksum. */
static char *read_link(struct search *search, const struct elf_image *image)
{
	const Elf64_Shdr *section = elf_image_section(image, ".gnu_debuglink");
	char *name = section ? elf_image_contents(image, section) : NULL;
	if (!name)
		return NULL;
	uint64_t at = (strlen(name) + 1 + 3) & ~UINT64_C(3);
	if (name[0] == 0 || strchr(name, '/') || section->sh_size < 4 || at > section->sh_size - 4) {
		free(name);
		return NULL;
	}
	memcpy(&search->checksum, name + at, sizeof(search->checksum));
	search->has_checksum = true;
	return name;
}

static int next_root(const char **root, const char **rest)
{
	*root = *rest;
	int length = (int)strcspn(*root, ":");
	*rest += length + ((*root)[length] == ':');
	return length;
}

char *debug_file_open(struct elf_image *debug, const struct elf_image *image, const char *path,
                      const char *build_id, const char *debug_path, const char *needed)
{
	struct search search = { .debug = debug, .build_id = build_id, .needed = needed };
	const char *root;
	char *found = NULL;
	for (const char *rest = debug_path; !found && *rest;) {
		int length = next_root(&root, &rest);
		if (length)
			found = search_build_id(&search, root, length);
	}
	char *name = !found && image ? read_link(&search, image) : NULL;
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
	free(name);
	return found;
}
