/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define RELATIVE R_X86_64_RELATIVE
#define WORD R_X86_64_64
#else
#define MACHINE EM_AARCH64
#define RELATIVE R_AARCH64_RELATIVE
#define WORD R_AARCH64_ABS64
#endif

#define PAGE 4096ul

static bool is_within(const struct load *load, uint64_t offset, uint64_t size)
{
	return offset <= load->size && size <= load->size - offset;
}

/* RELR: an address, then bitmaps of the words after it. */
static void relocate_packed(char *image, const struct load *load, const uint64_t *entries, size_t count)
{
	uint64_t where = 0;

	for (size_t i = 0; i < count; i++) {
		if (!(entries[i] & 1)) {
			where = entries[i];
			if (is_within(load, where, 8))
				*(uint64_t *)(image + where) += load->info.dlpi_addr;
			where += 8;
			continue;
		}
		for (int bit = 1; bit < 64; bit++)
			if ((entries[i] >> bit & 1) && is_within(load, where + 8 * (unsigned)(bit - 1), 8))
				*(uint64_t *)(image + where + 8 * (unsigned)(bit - 1)) +=
					load->info.dlpi_addr;
		where += 8 * 63;
	}
}

/* The loader looks each symbol up by its name, which brings the names into memory. */
static void read_names(const char *image, const struct load *load, const uint64_t *values,
                       uint64_t relocations, uint64_t size)
{
	const ElfW(Sym) *symbols = (const ElfW(Sym) *)(image + values[DT_SYMTAB]);

	if (!is_within(load, relocations, size))
		return;
	for (uint64_t i = 0; i < size / sizeof(ElfW(Rela)); i++) {
		const ElfW(Rela) *at = (const ElfW(Rela) *)(image + relocations) + i;
		uint64_t symbol = ELF64_R_SYM(at->r_info);

		if (symbol &&
		    is_within(load, values[DT_SYMTAB] + symbol * sizeof(*symbols), sizeof(*symbols)) &&
		    is_within(load, values[DT_STRTAB] + symbols[symbol].st_name, 1))
			(void)*(const volatile char *)(image + values[DT_STRTAB] + symbols[symbol].st_name);
	}
}

/* Relocates the object's own symbols. Imported symbols get an address, too. */
static void relocate(const struct load *load)
{
	char *image = (char *)load->info.dlpi_addr;
	uint64_t values[40] = { 0 }, packed = 0, packed_size = 0, count;
	const ElfW(Dyn) *entry = NULL;

	for (int i = 0; i < load->info.dlpi_phnum; i++)
		if (load->info.dlpi_phdr[i].p_type == PT_DYNAMIC &&
		    is_within(load, load->info.dlpi_phdr[i].p_vaddr, load->info.dlpi_phdr[i].p_memsz))
			entry = (const ElfW(Dyn) *)(image + load->info.dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag >= 0 && entry->d_tag < 40)
			values[entry->d_tag] = entry->d_un.d_val;
	}
	packed = values[36]; /* DT_RELR */
	packed_size = values[35];
	count = values[DT_RELASZ] / sizeof(ElfW(Rela));
	for (uint64_t i = 0; i < count && is_within(load, values[DT_RELA], values[DT_RELASZ]); i++) {
		const ElfW(Rela) *at = (const ElfW(Rela) *)(image + values[DT_RELA]) + i;
		const ElfW(Sym) *symbols = (const ElfW(Sym) *)(image + values[DT_SYMTAB]);
		uint64_t value = at->r_addend;

		if (!is_within(load, at->r_offset, 8))
			continue;
		if (ELF64_R_TYPE(at->r_info) == WORD)
			value += symbols[ELF64_R_SYM(at->r_info)].st_value
			                 ? symbols[ELF64_R_SYM(at->r_info)].st_value
			                 : PAGE;
		else if (ELF64_R_TYPE(at->r_info) != RELATIVE)
			continue;
		*(uint64_t *)(image + at->r_offset) = value + load->info.dlpi_addr;
	}
	if (is_within(load, packed, packed_size))
		relocate_packed(image, load, (const uint64_t *)(image + packed), packed_size / 8);
	read_names(image, load, values, values[DT_RELA], values[DT_RELASZ]);
	read_names(image, load, values, values[DT_JMPREL], values[DT_PLTRELSZ]);
}

/* Maps the file, like the loader, so pages that are not read take no memory. */
static bool map_segment(char *start, int fd, const ElfW(Phdr) *segment)
{
	size_t before = segment->p_offset % PAGE, rest = -(segment->p_offset + segment->p_filesz) % PAGE;

	if ((uintptr_t)start % PAGE != before ||
	    mmap(start - before, before + segment->p_filesz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
	         fd, (off_t)(segment->p_offset - before)) == MAP_FAILED)
		return false;
	if (segment->p_memsz > segment->p_filesz)
		memset(start + segment->p_filesz, 0, rest);
	return true;
}

static bool map_segments(struct load *load, int fd, const ElfW(Phdr) *segments, int count, size_t file_size)
{
	bool is_fixed = false;
	uintptr_t lowest = UINTPTR_MAX;

	for (int i = 0; i < count; i++)
		if (segments[i].p_type == PT_LOAD) {
			if (segments[i].p_vaddr < lowest)
				lowest = segments[i].p_vaddr;
			if (segments[i].p_vaddr + segments[i].p_memsz > load->size)
				load->size = segments[i].p_vaddr + segments[i].p_memsz;
			if (segments[i].p_offset + segments[i].p_filesz > file_size)
				return false;
		}
	is_fixed = lowest != UINTPTR_MAX && lowest >= PAGE;
	if (lowest == UINTPTR_MAX || load->size > (size_t)4 << 30)
		return false;
	lowest &= ~(PAGE - 1);
	load->memory = mmap(
		is_fixed ? (void *)lowest : NULL, load->size - lowest, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (is_fixed ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (load->memory == MAP_FAILED) {
		load->memory = NULL;
		return false;
	}
	load->info.dlpi_addr = (uintptr_t)load->memory - lowest;
	for (int i = 0; i < count; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_filesz &&
		    !map_segment((char *)load->info.dlpi_addr + segments[i].p_vaddr, fd, &segments[i]))
			return false;
	return true;
}

bool load_file(struct load *load, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ElfW(Ehdr) header;
	ElfW(Phdr) *segments = NULL;
	struct stat status;
	bool done = false;

	*load = (struct load){ 0 };
	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	    pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_machine != MACHINE || (header.e_type != ET_DYN && header.e_type != ET_EXEC) ||
	    header.e_phentsize != sizeof(*segments) || !header.e_phnum)
		goto out;
	segments = calloc(header.e_phnum, sizeof(*segments));
	if (!segments || pread(fd, segments, header.e_phnum * sizeof(*segments), (off_t)header.e_phoff) !=
	                         (ssize_t)(header.e_phnum * sizeof(*segments)))
		goto out;
	load->info.dlpi_name = path;
	load->info.dlpi_phdr = segments;
	load->info.dlpi_phnum = header.e_phnum;
	done = map_segments(load, fd, segments, header.e_phnum, (size_t)status.st_size);
	if (done)
		relocate(load);
out:
	if (fd >= 0)
		close(fd);
	if (!done) {
		load->info.dlpi_phdr = NULL;
		free(segments);
		if (load->memory)
			munmap(load->memory, load->size);
	}
	return done;
}

void load_free(struct load *load)
{
	uintptr_t start = (uintptr_t)load->memory;

	free((void *)load->info.dlpi_phdr);
	munmap(load->memory, load->size - (start - load->info.dlpi_addr));
}
