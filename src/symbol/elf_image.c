/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files through libelf. See the header for why they are read and not mapped.
 */
#include "symbol/elf_image.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/regular_file.h"
#include "symbol/consulted.h"

/* An object without sections is still good for its build id. */
static void read_sections(struct elf_image *image)
{
	const struct libdw *libdw = image->libdw;
	size_t count;
	if (libdw->elf_getshdrnum(image->elf, &count) != 0 || count > UINT32_MAX)
		return;
	image->sections = calloc(count + 1, sizeof(*image->sections));
	for (size_t i = 0; image->sections && i < count; i++) {
		const Elf64_Shdr *section = libdw->elf64_getshdr(libdw->elf_getscn(image->elf, i));
		if (!section)
			break;
		image->sections[image->section_count++] = *section;
	}
}

/* Relocatable objects are for what dwz shares; their addresses mean nothing. */
static bool is_usable(const Elf64_Ehdr *header)
{
	unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	return header && header->e_ident[EI_DATA] == order &&
	       (header->e_type == ET_EXEC || header->e_type == ET_DYN || header->e_type == ET_REL);
}

static bool finish_open(struct elf_image *image)
{
	Elf_Cmd way = image->is_mapped ? ELF_C_READ_MMAP : ELF_C_READ;
	image->libdw = libdw_load();
	if (image->libdw)
		image->elf = image->memory ? image->libdw->elf_memory(image->memory, image->size)
		                           : image->libdw->elf_begin(image->fd, way, NULL);
	/* NULL for anything but a 64-bit object. */
	const Elf64_Ehdr *header = image->elf ? image->libdw->elf64_getehdr(image->elf) : NULL;
	if (!is_usable(header)) {
		elf_image_close(image);
		return false;
	}
	image->header = *header;
	image->machine = header->e_machine;
	read_sections(image);
	return true;
}

bool elf_image_open(struct elf_image *image, const char *path)
{
	memset(image, 0, sizeof(*image));
	struct stat status;
	consulted_note(path);
	image->fd = regular_file_open(path, &status);
	image->path = strdup(path);
	if (image->fd < 0 || !image->path) {
		elf_image_close(image);
		return false;
	}
	image->size = (uint64_t)status.st_size;
	image->mtime_ns = (int64_t)ns_of_timespec(status.st_mtim);
	return finish_open(image);
}

bool elf_image_remap(struct elf_image *image, int fd, const char *needed)
{
	struct stat status;
	struct elf_image copy = { .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .is_mapped = true };
	copy.path = image->path ? strdup(image->path) : NULL;
	copy.mtime_ns = image->mtime_ns;
	copy.size = fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
	if (copy.fd < 0 || !copy.path || !copy.size) {
		elf_image_close(&copy);
		return false;
	}
	if (!finish_open(&copy))
		return false;
	if (!elf_image_section(&copy, needed)) {
		elf_image_close(&copy);
		return false;
	}
	close(fd);
	elf_image_close(image);
	*image = copy;
	return true;
}

bool elf_image_adopt(struct elf_image *image, void *memory, uint64_t size)
{
	memset(image, 0, sizeof(*image));
	image->fd = -1;
	image->memory = memory;
	image->size = size;
	return memory && finish_open(image);
}

bool elf_image_open_memory(struct elf_image *image, const void *memory)
{
	/* How much is mapped, only the object itself says: whole pages of its segment.
	 * The section headers are in the last one, behind the segment. */
	const Elf64_Ehdr *header = memory;
	const Elf64_Phdr *segments = (const void *)((const char *)memory + header->e_phoff);
	uint64_t size = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_filesz > size)
			size = segments[i].p_offset + segments[i].p_filesz;
	size = (size + page - 1) / page * page;
	void *copy = malloc(size);
	return elf_image_adopt(image, copy ? memcpy(copy, memory, size) : NULL, size);
}

void elf_image_close(struct elf_image *image)
{
	if (image->elf)
		image->libdw->elf_end(image->elf);
	free(image->sections);
	free(image->memory);
	free(image->path);
	if (image->fd >= 0)
		close(image->fd);
	memset(image, 0, sizeof(*image));
	image->fd = -1;
}

/* Compressed debug information had names of its own once: .zdebug_str. */
static bool is_called(const char *seen, const char *name)
{
	return strcmp(seen, name) == 0 || (strncmp(seen, ".z", 2) == 0 && strcmp(seen + 2, name + 1) == 0);
}

/* The number of the next section of that name, from `from` on; that of all sections: there is none. */
static unsigned find_section(const struct elf_image *image, const char *name, unsigned from)
{
	size_t names;
	if (image->libdw->elf_getshdrstrndx(image->elf, &names) != 0)
		return image->section_count;
	for (; from < image->section_count; from++) {
		const char *seen = image->libdw->elf_strptr(image->elf, names, image->sections[from].sh_name);
		if (seen && is_called(seen, name))
			break;
	}
	return from;
}

const Elf64_Shdr *elf_image_section(const struct elf_image *image, const char *name)
{
	unsigned found = find_section(image, name, 0);
	return found < image->section_count ? &image->sections[found] : NULL;
}

const Elf64_Shdr *elf_image_section_of_type(const struct elf_image *image, uint32_t type)
{
	for (unsigned i = 0; i < image->section_count; i++)
		if (image->sections[i].sh_type == type)
			return &image->sections[i];
	return NULL;
}

Elf_Data *elf_image_data(const struct elf_image *image, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_COMPRESSED))
		return NULL;
	size_t index = (size_t)(section - image->sections);
	Elf_Data *data = image->libdw->elf_getdata(image->libdw->elf_getscn(image->elf, index), NULL);
	return data && data->d_buf ? data : NULL;
}

const Elf_Data *elf_image_decompressed(const struct elf_image *image, const char *name)
{
	unsigned found = find_section(image, name, 0);
	Elf_Scn *section = found < image->section_count ? image->libdw->elf_getscn(image->elf, found) : NULL;
	const Elf64_Shdr *header = section ? image->libdw->elf64_getshdr(section) : NULL;
	if (!header || header->sh_type == SHT_NOBITS || (header->sh_flags & SHF_COMPRESSED))
		return NULL;
	const Elf_Data *data = image->libdw->elf_getdata(section, NULL);
	return data && data->d_buf ? data : NULL;
}

void elf_image_hide(struct elf_image *image, const char *name)
{
	const Elf64_Shdr *section = elf_image_section(image, name);
	if (!section)
		return;
	size_t index = (size_t)(section - image->sections);
	image->libdw->elf64_getshdr(image->libdw->elf_getscn(image->elf, index))->sh_type = SHT_NOBITS;
	image->sections[index].sh_type = SHT_NOBITS;
}

/* The size that is in the head of the old form of compression: "ZLIB", and a number whose first byte
 * is the highest. */
static uint64_t read_old_head(const unsigned char *head)
{
	uint64_t size = 0;
	for (int i = 4; i < 12; i++)
		size = size << 8 | head[i];
	return size;
}

static uint64_t decompressed_size(const struct elf_image *image, const Elf64_Shdr *section, bool is_old)
{
	Elf64_Chdr head;
	bool is_new = section->sh_flags & SHF_COMPRESSED;
	if (!is_old && !is_new)
		return section->sh_size;
	void *bytes = elf_image_read(image, section->sh_offset, sizeof(head));
	if (!bytes)
		return section->sh_size;
	memcpy(&head, bytes, sizeof(head));
	uint64_t size = is_new ? head.ch_size : read_old_head(bytes);
	free(bytes);
	return size;
}

uint64_t elf_image_debug_size(const struct elf_image *image)
{
	uint64_t sum = 0;
	size_t names;
	if (image->libdw->elf_getshdrstrndx(image->elf, &names) != 0)
		return 0;
	for (unsigned i = 0; i < image->section_count; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		const char *name = image->libdw->elf_strptr(image->elf, names, section->sh_name);
		bool is_old = name && strncmp(name, ".zdebug_", 8) == 0;
		if (!name || section->sh_type == SHT_NOBITS || (!is_old && strncmp(name, ".debug_", 7) != 0))
			continue;
		if (__builtin_add_overflow(sum, decompressed_size(image, section, is_old), &sum))
			return UINT64_MAX;
	}
	return sum;
}

bool elf_image_ends_in_zero(const struct elf_image *image, const char *name)
{
	for (unsigned i = 0; (i = find_section(image, name, i)) < image->section_count; i++) {
		if (image->sections[i].sh_type == SHT_NOBITS)
			continue;
		Elf_Data *data = image->libdw->elf_getdata(image->libdw->elf_getscn(image->elf, i), NULL);
		if (data && data->d_buf && data->d_size && ((const char *)data->d_buf)[data->d_size - 1])
			return false;
	}
	return true;
}

static void *copy_data(const Elf_Data *data)
{
	char *copy = data && data->d_buf ? malloc(data->d_size + 1) : NULL;
	if (copy) {
		memcpy(copy, data->d_buf, data->d_size);
		copy[data->d_size] = 0;
	}
	return copy;
}

void *elf_image_read(const struct elf_image *image, uint64_t offset, uint64_t size)
{
	if (image->fd < 0)
		return copy_data(
			image->libdw->elf_getdata_rawchunk(image->elf, (int64_t)offset, size, ELF_T_BYTE));
	/* libelf would keep a copy of its own. */
	char *copy = offset <= image->size && size <= image->size - offset ? malloc(size + 1) : NULL;
	uint64_t at = 0;
	while (copy && at < size) {
		ssize_t got = pread(image->fd, copy + at, size - at, (off_t)(offset + at));
		if (got <= 0) {
			free(copy);
			copy = NULL;
			break;
		}
		at += (uint64_t)got;
	}
	if (copy)
		copy[size] = 0;
	return copy;
}

void elf_image_build_id(const struct elf_image *image, char text[BUILD_ID_TEXT])
{
	const void *bytes;
	ssize_t size = image->libdw->dwelf_elf_gnu_build_id(image->elf, &bytes);
	elf_build_id_text(bytes, size, text);
}

void elf_build_id_text(const void *bytes, ssize_t size, char text[BUILD_ID_TEXT])
{
	static const char digits[] = "0123456789abcdef";
	if (size < 0 || size > (BUILD_ID_TEXT - 1) / 2)
		size = 0;
	for (ssize_t i = 0; i < size; i++) {
		unsigned char byte = ((const unsigned char *)bytes)[i];
		text[2 * i] = digits[byte >> 4];
		text[2 * i + 1] = digits[byte & 15];
	}
	text[2 * size] = 0;
}
