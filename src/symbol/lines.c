/*
 * Lines from DWARF through libdw.
 *
 * Which compilation unit covers an address is read from the units themselves, not
 * from .debug_aranges, which clang does not write.
 *
 * No file stays open: a host that closes all its descriptors and opens files of
 * its own would make us read those. libdw has read the debug sections when
 * dwarf_begin_elf() returns.
 */
#include "lines.h"

#include <stdlib.h>
#include <unistd.h>

/* Debug sections are held in memory; larger files give no lines. */
#define FILE_BYTES_MAX (UINT64_C(1) << 30)

struct unit_range {
	uint64_t start, end;
	Dwarf_Off unit;
};

struct lines {
	struct elf_image image;
	Dwarf *dwarf;
	struct unit_range *ranges;
	size_t count, capacity;
};

static bool add_range(struct lines *lines, struct unit_range range)
{
	if (lines->count == lines->capacity) {
		size_t wanted = lines->capacity ? lines->capacity * 2 : 64;
		void *grown = reallocarray(lines->ranges, wanted, sizeof(*lines->ranges));
		if (!grown)
			return false;
		lines->ranges = grown;
		lines->capacity = wanted;
	}
	lines->ranges[lines->count++] = range;
	return true;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct unit_range *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->unit > b->unit) - (a->unit < b->unit);
}

static bool collect_units(struct lines *lines)
{
	const struct libdw *libdw = lines->image.libdw;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	while (libdw->dwarf_get_units(lines->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		Dwarf_Addr base, start, end;
		ptrdiff_t at = 0;
		while ((at = libdw->dwarf_ranges(&die, at, &base, &start, &end)) > 0)
			/* Functions that the linker dropped lie at 0. */
			if (start && start < end &&
			    !add_range(lines, (struct unit_range){ start, end, libdw->dwarf_dieoffset(&die) }))
				return false;
	}
	if (lines->count)
		qsort(lines->ranges, lines->count, sizeof(*lines->ranges), compare_ranges);
	return lines->count > 0;
}

static void free_lines(struct lines *lines)
{
	if (lines->dwarf)
		lines->image.libdw->dwarf_end(lines->dwarf);
	free(lines->ranges);
	free(lines);
}

struct lines *lines_open(struct elf_image *image)
{
	struct lines *lines = image->size <= FILE_BYTES_MAX ? calloc(1, sizeof(*lines)) : NULL;
	if (!lines)
		return NULL;
	lines->image = *image;
	lines->dwarf = image->libdw->dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (!lines->dwarf || !collect_units(lines)) {
		free_lines(lines);
		return NULL;
	}
	image->libdw->elf_cntl(image->elf, ELF_C_FDDONE);
	if (image->fd >= 0)
		close(image->fd);
	lines->image.fd = -1;
	*image = (struct elf_image){ .fd = -1 };
	return lines;
}

void lines_close(struct lines *lines)
{
	if (!lines)
		return;
	struct elf_image image = lines->image;
	free_lines(lines); /* the DWARF before its file */
	elf_image_close(&image);
}

bool lines_find(struct lines *lines, uint64_t address, const char **file, int *line)
{
	const struct libdw *libdw = lines->image.libdw;
	size_t low = 0, high = lines->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (lines->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= lines->ranges[low - 1].end)
		return false;
	Dwarf_Die unit;
	if (!libdw->dwarf_offdie(lines->dwarf, lines->ranges[low - 1].unit, &unit))
		return false;
	Dwarf_Line *found = libdw->dwarf_getsrc_die(&unit, address);
	/* Line 0 is code that no line stands for. */
	if (!found || libdw->dwarf_lineno(found, line) != 0 || *line <= 0)
		return false;
	*file = libdw->dwarf_linesrc(found, NULL, NULL);
	return *file != NULL;
}
