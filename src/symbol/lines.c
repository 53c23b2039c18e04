/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines from DWARF through libdw.
 *
 * .debug_aranges says which unit has an address, if gcc wrote it. Units of clang are not in it, so for an
 * address that it lacks, all units are read, which takes ten times as long.
 *
 * No file stays open: if the host closed all its descriptors and opened files of its own,
 * libdw would read those. It has read the debug sections when dwarf_begin_elf() returns.
 */
#include "symbol/lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/search.h"
#include "base/vector.h"
#include "symbol/debug_file.h"
#include "symbol/inlines.h"

/* Debug sections are held in memory, decompressed; more of them give no lines. */
#define DEBUG_BYTES_MAX (UINT64_C(1) << 30)

struct unit_range {
	uint64_t start, end;
	uint32_t unit;
};

struct unit {
	Dwarf_Off die;
	bool tried; /* to read its functions */
	struct inlines *inlines;
};

struct lines {
	struct elf_image image, alternate;
	Dwarf *dwarf;
	Dwarf *alternate_dwarf;           /* of what several debug files share; NULL: there is none */
	VECTOR(struct unit_range) ranges; /* by start */
	VECTOR(struct unit) units;
	bool has_all;         /* else only what .debug_aranges lists */
	uint64_t ranges_left; /* that may be read, of units and functions: one for each byte of debug
	                         information */
};

/* The unit is the last one that was added. */
static bool add_range(struct lines *lines, uint64_t start, uint64_t end)
{
	const struct unit_range range = { start, end, (uint32_t)(lines->units.count - 1) };
	return vector_push(&lines->ranges, range);
}

COMPARE_BY_TWO(compare_ranges, struct unit_range, start, unit)

static bool sort_ranges(struct lines *lines)
{
	if (lines->ranges.count)
		qsort(lines->ranges.items, lines->ranges.count, sizeof(*lines->ranges.items), compare_ranges);
	return lines->ranges.count > 0;
}

static bool collect_units(struct lines *lines)
{
	const struct libdw *libdw = lines->image.libdw;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	while (libdw->dwarf_get_units(lines->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		Dwarf_Addr base, start, end;
		ptrdiff_t at = 0;
		if (!vector_push(&lines->units, (struct unit){ .die = libdw->dwarf_dieoffset(&die) }))
			return false;
		while ((at = libdw->dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
			if (!inlines_may_read(&lines->ranges_left))
				return false;
			/* Functions that the linker dropped lie at 0. */
			if (start && start < end && !add_range(lines, start, end))
				return false;
		}
	}
	return sort_ranges(lines);
}

/* The part of .debug_aranges about one unit begins with this, in the form for sizes of 32 bits. Pairs of an
 * address and a size follow at a multiple of 16, up to a pair of zeros. */
struct listed {
	uint32_t size; /* of what follows it */
	uint16_t version;
	uint32_t unit;
	uint8_t address_size, segment_size;
	uint8_t padding[4];
} __attribute__((packed));
_Static_assert(sizeof(struct listed) == 16, "the pairs follow");

/* Of one unit. False: no memory, or too many. */
static bool collect_pairs(struct lines *lines, const char *bytes, size_t size)
{
	uint64_t pair[2];
	for (size_t at = sizeof(struct listed); at + sizeof(pair) <= size; at += sizeof(pair)) {
		memcpy(pair, bytes + at, sizeof(pair));
		if (!inlines_may_read(&lines->ranges_left))
			return false;
		if (pair[0] && pair[1] && pair[1] <= UINT64_MAX - pair[0] &&
		    !add_range(lines, pair[0], pair[0] + pair[1]))
			return false;
	}
	return true;
}

/* False: there is no list, or it cannot be read, or it is empty. */
static bool collect_listed(struct lines *lines)
{
	const struct libdw *libdw = lines->image.libdw;
	const Elf_Data *data = elf_image_decompressed(&lines->image, ".debug_aranges");
	struct listed listed;
	Dwarf_Off next;
	size_t header, at = 0;
	for (; data && data->d_size - at >= sizeof(listed); at += 4 + listed.size) {
		const char *bytes = (const char *)data->d_buf + at;
		memcpy(&listed, bytes, sizeof(listed));
		if (listed.size > data->d_size - at - 4 || listed.version != 2 || listed.address_size != 8 ||
		    listed.segment_size ||
		    libdw->dwarf_next_unit(lines->dwarf, listed.unit, &next, &header, NULL, NULL, NULL, NULL,
		                           NULL, NULL) != 0 ||
		    !vector_push(&lines->units, (struct unit){ .die = listed.unit + header }) ||
		    !collect_pairs(lines, bytes, 4 + (size_t)listed.size))
			return false;
	}
	return sort_ranges(lines);
}

static void forget_units(struct lines *lines)
{
	for (size_t i = 0; i < lines->units.count; i++)
		inlines_close(lines->units.items[i].inlines);
	lines->units.count = lines->ranges.count = 0;
}

/* False: no unit has addresses. */
static bool collect_all(struct lines *lines)
{
	forget_units(lines);
	lines->has_all = true;
	return collect_units(lines);
}

static void close_file(struct elf_image *image)
{
	image->libdw->elf_cntl(image->elf, ELF_C_FDDONE);
	if (image->fd >= 0)
		close(image->fd);
	image->fd = -1;
}

/* dwarf_begin_elf() reads and decompresses every debug section. These, up to a quarter of all,
 * are about variables and macros: queryprof does not need them. */
static void hide_unneeded(struct elf_image *image)
{
	static const char *const unused[] = { ".debug_loc", ".debug_loclists", ".debug_macro",
		                              ".debug_macinfo" };

	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
		elf_image_hide(image, unused[i]);
}

static const struct lines_copies *copies;

void lines_use_copies(const struct lines_copies *use)
{
	copies = use;
}

/* libdw takes it that the last string of a section has an end. `*bytes`: of the sections that are held. */
static Dwarf *begin_dwarf(struct elf_image *image, uint64_t *bytes)
{
	bool is_copy = copies && copies->open(image);
	hide_unneeded(image);
	*bytes = elf_image_debug_size(image);
	if (*bytes > DEBUG_BYTES_MAX)
		return NULL;
	Dwarf *dwarf = image->libdw->dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (!dwarf)
		return NULL;
	if (!elf_image_ends_in_zero(image, ".debug_str") ||
	    !elf_image_ends_in_zero(image, ".debug_line_str")) {
		image->libdw->dwarf_end(dwarf);
		return NULL;
	}
	if (copies && !is_copy)
		copies->make(image);
	return dwarf;
}

/* libdw would search it by itself, but not in the folders of the settings, and keep
 * it open. */
static void open_alternate(struct lines *lines, const char *debug_path)
{
	const struct libdw *libdw = lines->image.libdw;
	const char *name;
	const void *bytes;
	char build_id[BUILD_ID_TEXT];
	uint64_t held;
	ssize_t size = libdw->dwelf_dwarf_gnu_debugaltlink(lines->dwarf, &name, &bytes);
	if (size <= 0)
		return;
	elf_build_id_text(bytes, size, build_id);
	if (!debug_file_open_alternate(&lines->alternate, &lines->image, name, build_id, debug_path))
		return;
	lines->alternate_dwarf = begin_dwarf(&lines->alternate, &held);
	if (lines->alternate_dwarf)
		libdw->dwarf_setalt(lines->dwarf, lines->alternate_dwarf);
	close_file(&lines->alternate);
}

/* All but the image. */
static void free_lines(struct lines *lines)
{
	const struct libdw *libdw = lines->image.libdw;
	forget_units(lines);
	if (lines->dwarf)
		libdw->dwarf_end(lines->dwarf);
	if (lines->alternate_dwarf)
		libdw->dwarf_end(lines->alternate_dwarf);
	elf_image_close(&lines->alternate);
	vector_free(&lines->units);
	vector_free(&lines->ranges);
	free(lines);
}

struct lines *lines_open(struct elf_image *image, const char *debug_path)
{
	struct lines *lines = calloc(1, sizeof(*lines));
	if (!lines)
		return NULL;
	lines->image = *image;
	lines->alternate.fd = -1;
	lines->dwarf = begin_dwarf(&lines->image, &lines->ranges_left);
	if (lines->dwarf)
		open_alternate(lines, debug_path);
	if (!lines->dwarf || (!collect_listed(lines) && !collect_all(lines))) {
		free_lines(lines);
		return NULL;
	}
	close_file(&lines->image);
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

/* The unit that has the address; NULL when none does. */
static struct unit *find_collected(struct lines *lines, uint64_t address, struct extent *extent)
{
	const struct unit_range *ranges = lines->ranges.items;
	size_t before = SEARCH_COUNT(lines->ranges.count, i, ranges[i].start <= address);
	if (before < lines->ranges.count)
		extent_cut(extent, address, ranges[before].start);
	if (!before)
		return NULL;
	extent_cut(extent, address, ranges[before - 1].start);
	extent_cut(extent, address, ranges[before - 1].end);
	return address < ranges[before - 1].end ? &lines->units.items[ranges[before - 1].unit] : NULL;
}

static struct unit *find_unit(struct lines *lines, uint64_t address, struct extent *extent)
{
	struct extent before = *extent;
	struct unit *unit = find_collected(lines, address, extent);
	if (unit || lines->has_all)
		return unit;
	collect_all(lines);
	*extent = before;
	return find_collected(lines, address, extent);
}

/* Of a unit's table of lines, which is sorted by address. If several rows have one address, the last one
 * counts, up to the next address. */
struct place {
	const char *file; /* NULL: no line stands for the code */
	int line;
};

/* Rows for one place that are found to be alike. More of them give a shorter extent. */
#define ROWS_ALIKE 64

static Dwarf_Addr address_of(const struct libdw *libdw, Dwarf_Lines *rows, size_t number)
{
	Dwarf_Addr address = 0;
	libdw->dwarf_lineaddr(libdw->dwarf_onesrcline(rows, number), &address);
	return address;
}

static struct place read_place(const struct libdw *libdw, Dwarf_Lines *rows, size_t number)
{
	Dwarf_Line *row = libdw->dwarf_onesrcline(rows, number);
	struct place place = { 0 };
	bool is_end = true;
	/* Line 0 is code that no line stands for. */
	if (libdw->dwarf_lineendsequence(row, &is_end) == 0 && !is_end &&
	    libdw->dwarf_lineno(row, &place.line) == 0 && place.line > 0)
		place.file = libdw->dwarf_linesrc(row, NULL, NULL);
	return place;
}

static bool is_at(const struct libdw *libdw, Dwarf_Lines *rows, size_t number, const struct place *place)
{
	const struct place found = read_place(libdw, rows, number);
	return found.file == place->file && (!found.file || found.line == place->line);
}

bool lines_find(struct lines *lines, uint64_t address, const char **file, int *line, struct extent *extent)
{
	const struct libdw *libdw = lines->image.libdw;
	const struct unit *unit = find_unit(lines, address, extent);
	Dwarf_Lines *rows;
	Dwarf_Die die;
	size_t count;
	if (!unit || !libdw->dwarf_offdie(lines->dwarf, unit->die, &die) ||
	    libdw->dwarf_getsrclines(&die, &rows, &count) != 0)
		return false;
	size_t before = SEARCH_COUNT(count, i, address_of(libdw, rows, i) <= address);
	size_t first = before, next = before;
	const struct place found = before ? read_place(libdw, rows, before - 1) : (struct place){ 0 };
	/* Neighbours may differ only in their columns. */
	while (next < count && next - before < ROWS_ALIKE && is_at(libdw, rows, next, &found))
		next++;
	while (first > 1 && before - first < ROWS_ALIKE && is_at(libdw, rows, first - 2, &found))
		first--;
	if (next < count)
		extent_cut(extent, address, address_of(libdw, rows, next));
	if (first)
		extent_cut(extent, address, address_of(libdw, rows, first - 1));
	*file = found.file;
	*line = found.line;
	return *file != NULL;
}

size_t lines_frames(struct lines *lines, uint64_t address, struct symbol_frame *frames, size_t room,
                    struct extent *extent)
{
	struct unit *unit = find_unit(lines, address, extent);
	Dwarf_Die die;
	if (unit && !unit->tried && lines->image.libdw->dwarf_offdie(lines->dwarf, unit->die, &die)) {
		unit->tried = true;
		unit->inlines = inlines_open(lines->image.libdw, &die, &lines->ranges_left);
	}
	size_t count = unit && unit->inlines ? inlines_find(unit->inlines, address, frames, room, extent) : 0;
	const char *file;
	int line;
	if (room == 0 || !lines_find(lines, address, &file, &line, extent))
		return count;
	if (count == 0)
		frames[count++] = (struct symbol_frame){ .function = NULL };
	if (frames[0].file) /* what it calls was left out */
		return count;
	frames[0].file = file;
	frames[0].line = line;
	return count;
}
