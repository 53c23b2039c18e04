/*
 * Reads ELF files. See the header for why by pread and not by mmap.
 */
#include "elf_image.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTIONS_MAX 1000000u
#define SEGMENTS_MAX 1000u

static bool range_is_inside(const struct elf_image *image, uint64_t offset, uint64_t size)
{
	return offset <= image->size && size <= image->size - offset;
}

static bool read_exactly(const struct elf_image *image, uint64_t offset, void *to, size_t size)
{
	if (!range_is_inside(image, offset, size))
		return false;
	if (image->fd < 0) {
		memcpy(to, image->memory + offset, size);
		return true;
	}
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(image->fd, (char *)to + done, size - done, (off_t)(offset + done));
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

void *elf_image_read(const struct elf_image *image, uint64_t offset, uint64_t size)
{
	if (!range_is_inside(image, offset, size))
		return NULL;
	char *copy = malloc((size_t)size + 1);
	if (!copy)
		return NULL;
	if (!read_exactly(image, offset, copy, (size_t)size)) {
		free(copy);
		return NULL;
	}
	copy[size] = 0;
	return copy;
}

void *elf_image_contents(const struct elf_image *image, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_COMPRESSED))
		return NULL;
	return elf_image_read(image, section->sh_offset, section->sh_size);
}

static bool read_header(struct elf_image *image)
{
	Elf64_Ehdr *header = &image->header;
	if (!read_exactly(image, 0, header, sizeof(*header)))
		return false;
	unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != order)
		return false;
	image->machine = header->e_machine;
	/* Addresses of relocatable objects mean nothing in a process. */
	return header->e_type == ET_EXEC || header->e_type == ET_DYN;
}

/* An object without section headers is still good for its build id. */
static void read_sections(struct elf_image *image)
{
	const Elf64_Ehdr *header = &image->header;
	if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	Elf64_Shdr first; /* holds what does not fit the header's fields */
	if (!read_exactly(image, header->e_shoff, &first, sizeof(first)))
		return;
	uint64_t count = header->e_shnum ? header->e_shnum : first.sh_size;
	uint64_t names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
	if (count == 0 || count > SECTIONS_MAX)
		return;
	image->sections = elf_image_read(image, header->e_shoff, count * sizeof(Elf64_Shdr));
	if (!image->sections)
		return;
	image->section_count = (unsigned)count;
	if (names < count) {
		image->section_names = elf_image_contents(image, &image->sections[names]);
		image->section_names_size = image->sections[names].sh_size;
	}
}

static bool finish_open(struct elf_image *image)
{
	if (!read_header(image)) {
		elf_image_close(image);
		return false;
	}
	read_sections(image);
	return true;
}

bool elf_image_open(struct elf_image *image, const char *path)
{
	memset(image, 0, sizeof(*image));
	/* Not blocking: the path may by now be somebody's pipe. */
	image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (image->fd < 0)
		return false;
	struct stat status;
	if (fstat(image->fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 0) {
		elf_image_close(image);
		return false;
	}
	image->size = (uint64_t)status.st_size;
	image->mtime_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	return finish_open(image);
}

bool elf_image_open_memory(struct elf_image *image, const void *memory)
{
	memset(image, 0, sizeof(*image));
	image->fd = -1;
	image->memory = memory;
	/* The section headers are the last thing in the kernel's vdso; its program
	 * headers say how much is mapped. */
	image->size = sizeof(Elf64_Ehdr);
	if (!read_header(image))
		return false;
	const Elf64_Ehdr *header = &image->header;
	uint64_t table = (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
	uint64_t sections = header->e_shoff + (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
	image->size = header->e_phoff + table;
	for (unsigned i = 0; i < header->e_phnum && header->e_phentsize == sizeof(Elf64_Phdr); i++) {
		Elf64_Phdr segment;
		memcpy(&segment, image->memory + header->e_phoff + i * sizeof(segment), sizeof(segment));
		if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > image->size)
			image->size = segment.p_offset + segment.p_filesz;
	}
	/* What the last page holds beyond the segment is mapped with it. */
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t mapped = (image->size + page - 1) / page * page;
	if (sections > image->size && sections <= mapped)
		image->size = sections;
	return finish_open(image);
}

void elf_image_close(struct elf_image *image)
{
	free(image->sections);
	free(image->section_names);
	if (image->fd >= 0)
		close(image->fd);
	memset(image, 0, sizeof(*image));
	image->fd = -1;
}

const Elf64_Shdr *elf_image_section(const struct elf_image *image, const char *name)
{
	for (unsigned i = 0; image->section_names && i < image->section_count; i++) {
		uint32_t at = image->sections[i].sh_name;
		if (at < image->section_names_size && strcmp(image->section_names + at, name) == 0)
			return &image->sections[i];
	}
	return NULL;
}

const Elf64_Shdr *elf_image_section_of_type(const struct elf_image *image, uint32_t type)
{
	for (unsigned i = 0; i < image->section_count; i++)
		if (image->sections[i].sh_type == type)
			return &image->sections[i];
	return NULL;
}

/* Looks for the build id in a run of notes. */
static bool find_in_notes(const unsigned char *notes, uint64_t size, uint64_t align,
                          char text[BUILD_ID_TEXT])
{
	for (uint64_t at = 0; at <= size && size - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr note;
		memcpy(&note, notes + at, sizeof(note));
		uint64_t name = at + sizeof(note);
		uint64_t content = name + (((uint64_t)note.n_namesz + align - 1) & ~(align - 1));
		uint64_t end = content + note.n_descsz;
		if (end > size)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= (BUILD_ID_TEXT - 1) / 2) {
			static const char digits[] = "0123456789abcdef";
			for (uint32_t i = 0; i < note.n_descsz; i++) {
				text[2 * i] = digits[notes[content + i] >> 4];
				text[2 * i + 1] = digits[notes[content + i] & 15];
			}
			text[2 * note.n_descsz] = 0;
			return true;
		}
		at = content + (((uint64_t)note.n_descsz + align - 1) & ~(align - 1));
	}
	return false;
}

static bool find_in_part(const struct elf_image *image, uint64_t offset, uint64_t size,
                         uint64_t align, char text[BUILD_ID_TEXT])
{
	unsigned char *notes = elf_image_read(image, offset, size);
	bool found = notes && find_in_notes(notes, size, align == 8 ? 8 : 4, text);
	free(notes);
	return found;
}

void elf_image_build_id(const struct elf_image *image, char text[BUILD_ID_TEXT])
{
	text[0] = 0;
	const Elf64_Ehdr *header = &image->header;
	/* Sections first: in a separate debug file the segments still describe the
	 * stripped object's layout. */
	for (unsigned i = 0; i < image->section_count; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		if (section->sh_type == SHT_NOTE &&
		    find_in_part(image, section->sh_offset, section->sh_size, section->sh_addralign, text))
			return;
	}
	if (image->section_count || header->e_phentsize != sizeof(Elf64_Phdr) ||
	    header->e_phnum > SEGMENTS_MAX)
		return;
	Elf64_Phdr *segments =
		elf_image_read(image, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
	for (unsigned i = 0; segments && i < header->e_phnum; i++)
		if (segments[i].p_type == PT_NOTE &&
		    find_in_part(image, segments[i].p_offset, segments[i].p_filesz, segments[i].p_align, text))
			break;
	free(segments);
}
