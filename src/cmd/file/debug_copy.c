/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/debug_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "symbol/elf_image.h"
#include "symbol/lines.h"

#define SUFFIX ".debug"
#define COPY_MAX (32 << 20)
#define ALL_MAX (64 << 20) /* when the copies have this size, the next one replaces them all */
#define STABLE_S 2         /* a file that changed just now may change again with the same time */
#define ALIGNMENT 16

static const char *copies;

/* Only for files that libdw would decompress. */
static bool is_wanted(const struct elf_image *image)
{
	const Elf64_Shdr *section = copies && image->fd >= 0 ? elf_image_section(image, ".debug_info") : NULL;
	return section && (section->sh_flags & SHF_COMPRESSED);
}

/* The name has the file's state, so the copy of a file that has changed is not found. NULL: it changed just
 * now. malloc'ed. */
static char *name_copy(const struct elf_image *image)
{
	struct stat file;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (fstat(image->fd, &file) != 0 || file.st_ctim.tv_sec > now.tv_sec - STABLE_S)
		return NULL;
	return text_format("%s/%llx-%llx-%llx-%llx-%lx" SUFFIX, copies, (long long)file.st_dev,
	                   (long long)file.st_ino, (long long)file.st_size, (long long)file.st_ctim.tv_sec,
	                   file.st_ctim.tv_nsec);
}

static bool open_copy(struct elf_image *image)
{
	char *name = is_wanted(image) ? name_copy(image) : NULL;
	struct stat status;
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	free(name);
	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    elf_image_remap(image, fd, ".debug_info"))
		return true;
	close(fd);
	return false;
}

/* --- making one ------------------------------------------------------------------------ */

/* Sections that are not in a process's memory: debug information, and the names of sections. */
static bool is_copied(const struct elf_image *image, size_t number, const Elf64_Shdr *section)
{
	return !(section->sh_flags & SHF_ALLOC) &&
	       (section->sh_type == SHT_PROGBITS || number == image->header.e_shstrndx);
}

static bool put(int fd, const void *bytes, size_t size, uint64_t at)
{
	return pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

/* As libelf has the sections now, with their numbers. */
static bool write_copy(const struct elf_image *image, int fd)
{
	const struct libdw *libdw = image->libdw;
	Elf64_Ehdr header = image->header;
	Elf64_Shdr *sections = calloc(image->section_count, sizeof(*sections));
	uint64_t at = sizeof(header);
	bool is_good = sections && image->section_count == header.e_shnum;
	for (size_t i = 0; is_good && i < image->section_count; i++) {
		Elf_Scn *section = libdw->elf_getscn(image->elf, i);
		sections[i] = *libdw->elf64_getshdr(section);
		if (is_copied(image, i, &sections[i])) {
			const Elf_Data *data = libdw->elf_getdata(section, NULL);
			sections[i].sh_offset = at;
			sections[i].sh_size = data ? data->d_size : 0;
			is_good = data && at + data->d_size <= COPY_MAX &&
			          put(fd, data->d_buf, data->d_size, at);
			at = (at + sections[i].sh_size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		} else if (sections[i].sh_type != SHT_NULL) {
			sections[i].sh_type = SHT_NOBITS;
		}
	}
	header.e_phoff = header.e_phnum = 0;
	header.e_shoff = at;
	is_good = is_good && put(fd, sections, image->section_count * sizeof(*sections), at) &&
	          put(fd, &header, sizeof(header), 0);
	free(sections);
	return is_good;
}

static bool is_copy(const char *name)
{
	size_t size = strlen(name);
	return size > strlen(SUFFIX) && strcmp(name + size - strlen(SUFFIX), SUFFIX) == 0;
}

static void make_room(void)
{
	DIR *folder = opendir(copies);
	uint64_t bytes = 0;
	struct stat status;

	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		char *path = is_copy(entry->d_name) ? text_format("%s/%s", copies, entry->d_name) : NULL;
		if (path && stat(path, &status) == 0)
			bytes += (uint64_t)status.st_size;
		free(path);
	}
	if (folder)
		rewinddir(folder);
	for (const struct dirent *entry; folder && bytes > ALL_MAX && (entry = readdir(folder));)
		if (is_copy(entry->d_name))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
}

static void make_copy(const struct elf_image *image)
{
	char *name = is_wanted(image) ? name_copy(image) : NULL, *made = NULL;
	int fd;
	if (!name || !(made = text_format("%s/new-XXXXXX", copies))) {
		free(name);
		return;
	}
	make_room();
	fd = mkostemp(made, O_CLOEXEC);
	if (fd >= 0 && (!write_copy(image, fd) || fdatasync(fd) || rename(made, name)))
		unlink(made);
	if (fd >= 0)
		close(fd);
	free(made);
	free(name);
}

void debug_copies_use(const char *folder)
{
	static const struct lines_copies functions = { open_copy, make_copy };

	copies = folder;
	lines_use_copies(folder ? &functions : NULL);
}
