/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file, opened with elfutils' libelf.
 *
 * Files are read and not mapped: a look-up in a file that another process truncates then
 * fails, and the host gets no SIGBUS. (The command maps copies of its own, cmd/file/debug_copy.h.) Only
 * 64-bit objects of the machine's own byte order are opened, so that the structures of <elf.h> are those of
 * the file. One thread at a time uses an image; different images may be used at once.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "modules/module_map.h"
#include "symbol/libdw.h"

struct elf_image {
	const struct libdw *libdw;
	Elf *elf;
	int fd; /* -1: the object is `memory` */
	bool is_mapped;
	void *memory; /* malloc'ed */
	char *path;   /* as it was opened; NULL for what is in memory */
	uint64_t size;
	int64_t mtime_ns;
	uint16_t machine;
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	unsigned section_count;
};

/* False when the path is no regular file that can be read, or no ELF object that
 * is of use; nothing is left open then, and elf_image_close() does nothing. */
bool elf_image_open(struct elf_image *image, const char *path);

/* A copy of the object that the kernel mapped at `memory` (the vdso). */
bool elf_image_open_memory(struct elf_image *image, const void *memory);

/* The object in malloc'ed memory, which becomes the image's own in any case. */
bool elf_image_adopt(struct elf_image *image, void *memory, uint64_t size);

/* Replaces the object by a copy of it, which is mapped. The image keeps its path, and the descriptor belongs
 * to it. False: the copy cannot be used or has no section `needed`; nothing has changed. */
bool elf_image_remap(struct elf_image *image, int fd, const char *needed);

void elf_image_close(struct elf_image *image);

/* The first section of that name or type; NULL when there is none. Of a name as .debug_str also what is
 * compressed in the old form, and called .zdebug_str. */
const Elf64_Shdr *elf_image_section(const struct elf_image *image, const char *name);
const Elf64_Shdr *elf_image_section_of_type(const struct elf_image *image, uint32_t type);

/* The section's contents, valid until the image is closed; NULL when it has no
 * contents in the file, or they are compressed or cannot be read. */
Elf_Data *elf_image_data(const struct elf_image *image, const Elf64_Shdr *section);

/* The contents of the first section of that name, after libdw has decompressed it; NULL: there are none. */
const Elf_Data *elf_image_decompressed(const struct elf_image *image, const char *name);

/* From now on libelf and libdw take the first section of that name as one without contents. */
void elf_image_hide(struct elf_image *image, const char *name);

/* How many bytes the debug sections have in all when they are decompressed, as they say themselves. */
uint64_t elf_image_debug_size(const struct elf_image *image);

/* Whether the contents of all sections of that name, decompressed by now, end in a zero
 * byte, as a table of strings must. */
bool elf_image_ends_in_zero(const struct elf_image *image, const char *name);

/* A malloc'ed copy of a part of the file, with a zero byte after it; NULL also when there
 * is no memory. */
void *elf_image_read(const struct elf_image *image, uint64_t offset, uint64_t size);

#define BUILD_ID_TEXT (MODULE_BUILD_ID_MAX + 1) /* hex of the longest build id that is taken, and a zero */

/* The build id as lower-case hex, "" when there is none. */
void elf_image_build_id(const struct elf_image *image, char text[BUILD_ID_TEXT]);

/* The same from its bytes; a negative size: none. */
void elf_build_id_text(const void *bytes, ssize_t size, char text[BUILD_ID_TEXT]);
