/*
 * The few things that symbols need of an ELF file: its sections, their contents,
 * its build id.
 *
 * Files are read with pread into memory of our own and never mapped: a file that
 * somebody truncates while we look at it then costs an answer, not the host's
 * life. Nothing read is trusted; every offset is checked against the file's size.
 * 64-bit objects of the machine's own byte order only.
 */
#ifndef QUERYPROF_SYMBOL_ELF_IMAGE_H
#define QUERYPROF_SYMBOL_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image {
	int fd;                      /* -1: the object lies at `memory` */
	const unsigned char *memory; /* the vdso */
	uint64_t size;
	int64_t mtime_ns;
	uint16_t machine;
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	unsigned section_count;
	char *section_names;
	uint64_t section_names_size;
};

/* False when the path is no regular file that can be read, or no ELF object that
 * we can use; nothing is left open then. */
bool elf_image_open(struct elf_image *image, const char *path);

/* The object that the kernel mapped at `memory` (the vdso). */
bool elf_image_open_memory(struct elf_image *image, const void *memory);

void elf_image_close(struct elf_image *image);

/* A malloc'ed copy of part of the file with a zero byte after it; NULL when the
 * part is not in the file, or there is no memory. */
void *elf_image_read(const struct elf_image *image, uint64_t offset, uint64_t size);

/* The first section of that name or type; NULL when there is none. */
const Elf64_Shdr *elf_image_section(const struct elf_image *image, const char *name);
const Elf64_Shdr *elf_image_section_of_type(const struct elf_image *image, uint32_t type);

/* The section's contents as elf_image_read() gives them; NULL for one without. */
void *elf_image_contents(const struct elf_image *image, const Elf64_Shdr *section);

#define BUILD_ID_TEXT 129 /* hex of the longest build id that is taken, and a zero */

/* The build id as lower-case hex, "" when there is none. */
void elf_image_build_id(const struct elf_image *image, char text[BUILD_ID_TEXT]);

#endif
