/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the program headers of every mapped object through loader_each().
 *
 * The loader holds a lock while it calls the callback, and a thread may wait for that lock while it
 * holds any other lock of the process, including malloc's. So the callback allocates nothing: it
 * fills the existing memory, and if that is too small, the scan starts again with more. The callback
 * also reads the object's memory (build id, unwind tables), because only there the object cannot be
 * unmapped.
 */
#include "modules/scan.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loader.h"
#include "modules/made_code.h"
#include "modules/watch.h"

#define RECORDER_MEMORY "/memfd:queryprof-recorder"
#define NOWHERE SIZE_MAX

static uintptr_t page_floor(uintptr_t address)
{
	return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static uintptr_t page_ceil(uintptr_t address)
{
	return page_floor(address + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Appends `size` bytes and a zero; returns the offset, NOWHERE if there is no space. */
static size_t add_text(struct scan *scan, const char *text, size_t size)
{
	const size_t at = scan->text.count;

	if (scan->text.room - at < size + 1)
		return NOWHERE;
	memcpy(scan->text.items + at, text, size);
	scan->text.items[at + size] = 0;
	scan->text.count += size + 1;
	return at;
}

/* Whether [start, start + size) of the object is loaded and readable. */
static bool is_loaded(const struct dl_phdr_info *info, uintptr_t start, size_t size)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uintptr_t from = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) && start >= from &&
		    start - from <= segment->p_memsz && size <= segment->p_memsz - (start - from))
			return true;
	}
	return false;
}

/* The GNU build id among the notes of [p, end), NULL when it is not there. */
static const uint8_t *find_build_id(const char *p, const char *end, uint32_t *size)
{
	ElfW(Nhdr) note;

	while ((size_t)(end - p) >= sizeof(note)) {
		memcpy(&note, p, sizeof(note));
		p += sizeof(note);
		const size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		const size_t description = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name > (size_t)(end - p) || note.n_descsz > (size_t)(end - p) - name)
			return NULL;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(p, "GNU", 4) == 0) {
			*size = note.n_descsz;
			return (const uint8_t *)p + name;
		}
		if (description > (size_t)(end - p) - name)
			return NULL;
		p += name + description;
	}
	return NULL;
}

static size_t add_build_id(struct scan *scan, const struct dl_phdr_info *info)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * 64];

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *notes = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + notes->p_vaddr;
		uint32_t size = 0;
		if (notes->p_type != PT_NOTE || !is_loaded(info, start, notes->p_memsz))
			continue;
		const uint8_t *id =
			find_build_id((const char *)start, (const char *)start + notes->p_memsz, &size);
		if (!id || size > sizeof(text) / 2)
			continue;
		for (uint32_t b = 0; b < size; b++) {
			text[2 * b] = digits[id[b] >> 4];
			text[2 * b + 1] = digits[id[b] & 15];
		}
		return add_text(scan, text, 2 * (size_t)size);
	}
	return add_text(scan, "", 0);
}

/* The readable memory around `address`: its segment and those that adjoin it page by page. Between
 * segments that do not adjoin, nothing may be readable. */
static void find_readable_run(const struct dl_phdr_info *info, uintptr_t address, uintptr_t *run_start,
                              uintptr_t *run_end)
{
	bool grew = true;

	*run_start = *run_end = address;
	while (grew) {
		grew = false;
		for (int i = 0; i < info->dlpi_phnum; i++) {
			const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
			if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R))
				continue;
			const uintptr_t from = page_floor(info->dlpi_addr + segment->p_vaddr);
			const uintptr_t to = page_ceil(info->dlpi_addr + segment->p_vaddr + segment->p_memsz);
			if (from > *run_end || to < *run_start)
				continue;
			if (from < *run_start || to > *run_end)
				grew = true;
			*run_start = from < *run_start ? from : *run_start;
			*run_end = to > *run_end ? to : *run_end;
		}
	}
}

static void add_ranges(struct scan *scan, const struct dl_phdr_info *info, const struct scan_object *object)
{
	struct code_range range = {
		.image_start = (uintptr_t)object->start,
	};

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + header->p_vaddr;
		if (header->p_type != PT_GNU_EH_FRAME || !is_loaded(info, start, header->p_memsz))
			continue;
		range.eh_frame_hdr = start;
		range.eh_frame_hdr_end = start + header->p_memsz;
		find_readable_run(info, start, &range.cfi_start, &range.cfi_end);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || segment->p_memsz == 0)
			continue;
		if (scan->ranges.count == scan->ranges.room) {
			scan->cut = true;
			return;
		}
		range.start = info->dlpi_addr + segment->p_vaddr;
		range.end = range.start + segment->p_memsz;
		scan->ranges.items[scan->ranges.count++] = range;
	}
}

/* strlen() of a text that the loader's lock guards: ThreadSanitizer does not know that
 * lock, and makes an exception only for the bytes before the zero. */
__attribute__((no_sanitize("thread"))) static size_t name_size(const char *name)
{
	size_t size = 0;

	while (name[size] != 0)
		size++;
	return size;
}

static void add_object(struct scan *scan, const struct dl_phdr_info *info)
{
	struct scan_object object = { .bias = info->dlpi_addr, .start = UINT64_MAX };
	const char *name = info->dlpi_name ? info->dlpi_name : "";

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || segment->p_memsz == 0)
			continue;
		const uint64_t from = page_floor(info->dlpi_addr + segment->p_vaddr);
		const uint64_t to = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
		object.start = from < object.start ? from : object.start;
		object.end = to > object.end ? to : object.end;
	}
	if (object.end == 0)
		return;
	add_ranges(scan, info, &object);
	object.path = add_text(scan, name, name_size(name));
	object.build_id = add_build_id(scan, info);
	if (object.path == NOWHERE || object.build_id == NOWHERE || scan->objects.count == scan->objects.room)
		scan->cut = true;
	else
		scan->objects.items[scan->objects.count++] = object;
}

static int see_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct scan *scan = context;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
		scan->adds = info->dlpi_adds;
		scan->subs = info->dlpi_subs;
		if (scan->objects.count == 0)
			scan->watches = watch_adopt(scan->adds, scan->subs, scan->watch);
	}
	add_object(scan, info);
	return scan->cut;
}

/* The loader of a static program may leave out the vdso. */
static void add_vdso(struct scan *scan)
{
	const uintptr_t base = getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)base;

	if (base == 0)
		return;
	for (size_t i = 0; i < scan->objects.count; i++)
		if (scan->objects.items[i].start == base)
			return;
	struct dl_phdr_info info = {
		.dlpi_name = "[vdso]",
		.dlpi_phdr = (const ElfW(Phdr) *)(base + elf->e_phoff),
		.dlpi_phnum = elf->e_phnum,
	};
	for (int i = 0; i < info.dlpi_phnum; i++)
		if (info.dlpi_phdr[i].p_type == PT_LOAD) {
			info.dlpi_addr = base - info.dlpi_phdr[i].p_vaddr;
			break;
		}
	add_object(scan, &info);
}

/* Replaces the object's path. */
static int set_path(struct scan *scan, struct scan_object *object, const char *path, size_t size)
{
	if (!vector_reserve(&scan->text, scan->text.count + size + 1))
		return ENOMEM;
	object->path = add_text(scan, path, size);
	return 0;
}

/* Takes the paths from the kernel's list: they are absolute, whatever name dlopen() got and
 * whatever the current directory, and deleted files are marked. */
static int read_paths(struct scan *scan)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_size = sizeof(deleted) - 1;
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t size;
	int error = 0;

	if (!maps)
		return 0;
	while (error == 0 && (size = getline(&line, &room, maps)) > 0) {
		unsigned long long start;
		int path = 0;
		if (line[size - 1] == '\n')
			line[--size] = 0;
		if (sscanf(line, "%llx-%*x %*s %*s %*s %*s %n", &start, &path) != 1 || path == 0)
			continue;
		for (size_t i = 0; error == 0 && i < scan->objects.count; i++) {
			struct scan_object *object = &scan->objects.items[i];
			if (object->start != start)
				continue;
			const char *name = line + path;
			/* The recorder of an attached process has its file's name from the loader alone
			 * (recorder/attached.c). */
			if (strncmp(name, RECORDER_MEMORY, sizeof(RECORDER_MEMORY) - 1) == 0)
				continue;
			size_t name_size = (size_t)size - (size_t)path;
			bool is_deleted = name_size > deleted_size &&
			                  strcmp(name + name_size - deleted_size, deleted) == 0;
			if (is_deleted)
				name_size -= deleted_size;
			if (name[0] == '/' || strcmp(name, "[vdso]") == 0)
				error = set_path(scan, object, name, name_size);
			object->mtime_ns = is_deleted ? -1 : 0;
		}
	}
	free(line);
	fclose(maps);
	return error;
}

/* Makes the remaining relative names absolute, and reads size and time of the files. */
static int read_files(struct scan *scan)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < scan->objects.count; i++) {
		struct scan_object *object = &scan->objects.items[i];
		const char *name = scan->text.items + object->path;
		const bool is_deleted = object->mtime_ns < 0;
		struct stat file;
		object->mtime_ns = 0;
		if (*name != '/' && *name != '[' && realpath(*name != 0 ? name : "/proc/self/exe", path) &&
		    set_path(scan, object, path, strlen(path)) != 0)
			return ENOMEM;
		name = scan->text.items + object->path;
		if (is_deleted || *name != '/' || stat(name, &file) != 0)
			continue;
		object->file_size = (uint64_t)file.st_size;
		object->mtime_ns = (int64_t)ns_of_timespec(file.st_mtim);
	}
	return 0;
}

int scan_modules(struct scan *scan)
{
	size_t more = 32; /* objects; a guess at what the others need for them */

	watch_init();
	memset(scan, 0, sizeof(*scan));
	do {
		if (!vector_reserve(&scan->objects, more) || !vector_reserve(&scan->ranges, 2 * more) ||
		    !vector_reserve(&scan->text, 128 * more))
			return ENOMEM;
		scan->objects.count = scan->ranges.count = scan->text.count = 0;
		scan->cut = false;
		loader_each(see_object, scan);
		if (!scan->cut)
			add_vdso(scan);
		more *= 2;
	} while (scan->cut);
	const int error = read_paths(scan);
	return error != 0 ? error : read_files(scan);
}

int scan_add_made_code(struct scan *scan)
{
	static const char name[] = "[queryprof]";
	const struct made_code *codes;
	size_t count = made_code_all(&codes);

	if (!vector_reserve(&scan->objects, scan->objects.count + count) ||
	    !vector_reserve(&scan->ranges, scan->ranges.count + count) ||
	    !vector_reserve(&scan->text, scan->text.count + count * (sizeof(name) + 1)))
		return ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct scan_object object = { .start = codes[i].start, .end = codes[i].unwinding_end };
		const struct code_range range = {
			.start = codes[i].start,
			.end = codes[i].end,
			.eh_frame_hdr = codes[i].unwinding,
			.eh_frame_hdr_end = codes[i].unwinding_end,
			.cfi_start = codes[i].start,
			.cfi_end = codes[i].unwinding_end,
			.is_made = true,
		};

		object.bias = object.start;
		object.path = add_text(scan, name, sizeof(name) - 1);
		object.build_id = add_text(scan, "", 0);
		scan->ranges.items[scan->ranges.count++] = range;
		scan->objects.items[scan->objects.count++] = object;
	}
	return 0;
}

void scan_free(struct scan *scan)
{
	vector_free(&scan->objects);
	vector_free(&scan->ranges);
	vector_free(&scan->text);
}

static int see_counters(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t *counters = context;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
		counters[0] = info->dlpi_adds;
		counters[1] = info->dlpi_subs;
	}
	return 1;
}

void scan_counters(uint64_t *adds, uint64_t *subs)
{
	uint64_t counters[2] = { 0, 0 };

	loader_each(see_counters, counters);
	*adds = counters[0];
	*subs = counters[1];
}
