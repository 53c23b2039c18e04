/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined frames from DWARF through libdw.
 *
 * libdw's own dwarf_getscopes() reads the whole unit at each call. Here the first look-up
 * in a unit lists its functions, and the first one in a function lists what is inlined there.
 *
 * The entry of an inlined function has the place of its call and refers to the function's
 * own entry, which has its name and may be in another unit (link-time optimisation) or
 * another file (dwz).
 */
#include "symbol/inlines.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/vector.h"

#define DEPTH_MAX 256 /* of what is nested in a unit; deeper is damaged */

/* What the compiler put into a function. Those of the next level follow the one that contains them. */
struct inlined {
	Dwarf_Die die;
	const char *name;    /* NULL: not read, or unknown */
	unsigned level;      /* 1: in the function itself */
	size_t first, count; /* of its ranges */
};

struct range {
	uint64_t start, end;
};

struct function {
	uint64_t start, end;
	Dwarf_Off die;
	bool tried; /* to read the rest */
	const char *name;
	VECTOR(struct inlined) inlined;
	VECTOR(struct range) ranges;
};

/* A walk over entries. They lie one behind the other, children behind their parent. A file that says
 * otherwise is damaged: the walk would meet entries again, up to 2^256 times. */
struct walk {
	const struct libdw *libdw;
	const void *newest; /* the last entry that it has met */
};

struct inlines {
	const struct libdw *libdw;
	Dwarf_Die unit;
	uint64_t *ranges_left;
	VECTOR(struct function) functions; /* by start; one with several ranges is there as often */
};

/* --- entries -------------------------------------------------------------------- */

static bool meet(struct walk *walk, const Dwarf_Die *die)
{
	bool is_behind = (const char *)die->addr > (const char *)walk->newest;
	if (is_behind)
		walk->newest = die->addr;
	return is_behind;
}

static bool first_child(struct walk *walk, Dwarf_Die *parent, Dwarf_Die *child)
{
	return walk->libdw->dwarf_child(parent, child) == 0 && meet(walk, child);
}

static bool next_sibling(struct walk *walk, Dwarf_Die *die)
{
	return walk->libdw->dwarf_siblingof(die, die) == 0 && meet(walk, die);
}

/* --- the functions of a unit ---------------------------------------------------- */

/* The next range of the entry; `*at` begins with 0. 1: there is none, -1: there are too many. */
static int next_range(const struct inlines *inlines, Dwarf_Die *die, ptrdiff_t *at, struct range *range)
{
	Dwarf_Addr base, start, end;
	while ((*at = inlines->libdw->dwarf_ranges(die, *at, &base, &start, &end)) > 0) {
		if (!inlines_may_read(inlines->ranges_left))
			return -1;
		*range = (struct range){ start, end };
		if (start != 0 && start < end) /* else the linker dropped it */
			return 0;
	}
	return 1;
}

static bool add_function(struct inlines *inlines, Dwarf_Die *die)
{
	struct function function = { .die = inlines->libdw->dwarf_dieoffset(die) };
	struct range range;
	ptrdiff_t at = 0;
	int result;
	while ((result = next_range(inlines, die, &at, &range)) == 0) {
		function.start = range.start;
		function.end = range.end;
		if (!vector_push(&inlines->functions, function))
			return false;
	}
	return result > 0;
}

/* Functions stand in units and namespaces, but those of local classes and nested
 * ones in other functions. */
static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block: return true;
	default: return false;
	}
}

static bool collect_functions(struct inlines *inlines, struct walk *walk, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die child;
	if (depth == DEPTH_MAX || !first_child(walk, parent, &child))
		return true;
	do {
		int tag = walk->libdw->dwarf_tag(&child);
		if (tag == DW_TAG_subprogram && !add_function(inlines, &child))
			return false;
		if (may_hold_functions(tag) && !collect_functions(inlines, walk, &child, depth + 1))
			return false;
	} while (next_sibling(walk, &child));
	return true;
}

COMPARE_BY_TWO(compare_functions, struct function, start, die)

struct inlines *inlines_open(const struct libdw *libdw, Dwarf_Die *unit, uint64_t *ranges_left)
{
	struct inlines *inlines = calloc(1, sizeof(*inlines));
	if (!inlines)
		return NULL;
	inlines->libdw = libdw;
	inlines->unit = *unit;
	inlines->ranges_left = ranges_left;
	struct walk walk = { .libdw = libdw };
	if (!collect_functions(inlines, &walk, unit, 0)) {
		inlines_close(inlines);
		return NULL;
	}
	if (inlines->functions.count)
		qsort(inlines->functions.items, inlines->functions.count, sizeof(*inlines->functions.items),
		      compare_functions);
	return inlines;
}

void inlines_close(struct inlines *inlines)
{
	if (!inlines)
		return;
	for (size_t i = 0; i < inlines->functions.count; i++) {
		vector_free(&inlines->functions.items[i].inlined);
		vector_free(&inlines->functions.items[i].ranges);
	}
	vector_free(&inlines->functions);
	free(inlines);
}

/* --- what is inlined in a function ------------------------------------------------ */

static bool add_inlined(const struct inlines *inlines, struct function *function, Dwarf_Die *die,
                        unsigned level)
{
	struct inlined inlined = { .die = *die, .level = level, .first = function->ranges.count };
	struct range range;
	ptrdiff_t at = 0;
	int result;
	while ((result = next_range(inlines, die, &at, &range)) == 0)
		if (!vector_push(&function->ranges, range))
			return false;
	inlined.count = function->ranges.count - inlined.first;
	return result > 0 && (!inlined.count || vector_push(&function->inlined, inlined));
}

static bool collect_inlined(const struct inlines *inlines, struct function *function, struct walk *walk,
                            Dwarf_Die *parent, unsigned level, unsigned depth)
{
	Dwarf_Die child;
	if (depth == DEPTH_MAX || !first_child(walk, parent, &child))
		return true;
	do {
		int tag = walk->libdw->dwarf_tag(&child);
		size_t before = function->inlined.count;
		if (tag == DW_TAG_inlined_subroutine && !add_inlined(inlines, function, &child, level))
			return false;
		bool is_inlined = function->inlined.count > before;
		if ((is_inlined || tag == DW_TAG_lexical_block) &&
		    !collect_inlined(inlines, function, walk, &child, level + is_inlined, depth + 1))
			return false;
	} while (next_sibling(walk, &child));
	return true;
}

/* Without memory, what was read so far remains. */
static void read_function(const struct inlines *inlines, struct function *function, Dwarf_Die *die)
{
	struct walk walk = { .libdw = inlines->libdw };
	if (!function->tried)
		collect_inlined(inlines, function, &walk, die, 1, 0);
	function->tried = true;
}

/* --- frames ----------------------------------------------------------------------- */

static const char *name_of(const struct libdw *libdw, Dwarf_Die *die)
{
	static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };
	Dwarf_Attribute attribute;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (libdw->dwarf_attr_integrate(die, names[i], &attribute))
			return libdw->dwarf_formstring(&attribute);
	return NULL;
}

/* Where the inlined function was called. */
static void read_call(const struct inlines *inlines, Dwarf_Die *inlined, struct symbol_frame *caller)
{
	const struct libdw *libdw = inlines->libdw;
	Dwarf_Die unit = inlines->unit;
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t count;
	if (libdw->dwarf_formudata(libdw->dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0 ||
	    line == 0 || line > INT32_MAX ||
	    libdw->dwarf_formudata(libdw->dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
	    libdw->dwarf_getsrcfiles(&unit, &files, &count) != 0 || file >= count)
		return;
	caller->file = libdw->dwarf_filesrc(files, file, NULL, NULL);
	caller->line = caller->file ? (int)line : 0;
}

static bool has_address(const struct function *function, const struct inlined *inlined, uint64_t address,
                        struct extent *extent)
{
	const struct range *range = function->ranges.items + inlined->first, *end = range + inlined->count;
	bool found = false;
	for (; range < end; range++) {
		extent_cut(extent, address, range->start);
		extent_cut(extent, address, range->end);
		found |= address >= range->start && address < range->end;
	}
	return found;
}

static struct function *find_function(struct inlines *inlines, uint64_t address, struct extent *extent)
{
	struct function *functions = inlines->functions.items;
	size_t before = SEARCH_COUNT(inlines->functions.count, i, functions[i].start <= address);
	if (before < inlines->functions.count)
		extent_cut(extent, address, functions[before].start);
	if (!before)
		return NULL;
	extent_cut(extent, address, functions[before - 1].start);
	extent_cut(extent, address, functions[before - 1].end);
	return address < functions[before - 1].end ? &functions[before - 1] : NULL;
}

static void reverse(struct symbol_frame *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct symbol_frame frame = frames[i];
		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = frame;
	}
}

size_t inlines_find(struct inlines *inlines, uint64_t address, struct symbol_frame *frames, size_t room,
                    struct extent *extent)
{
	const struct libdw *libdw = inlines->libdw;
	struct function *function = find_function(inlines, address, extent);
	Dwarf *dwarf = libdw->dwarf_cu_getdwarf(inlines->unit.cu);
	Dwarf_Die die;
	unsigned level = 1;
	if (!function || room == 0 || !libdw->dwarf_offdie(dwarf, function->die, &die))
		return 0;
	read_function(inlines, function, &die);
	/* From the outermost on, as they are listed. */
	size_t count = 0;
	if (!function->name)
		function->name = name_of(libdw, &die);
	frames[count++] = (struct symbol_frame){ .function = function->name };
	for (size_t i = 0; i < function->inlined.count && function->inlined.items[i].level >= level; i++) {
		struct inlined *inlined = &function->inlined.items[i];
		if (inlined->level > level || !has_address(function, inlined, address, extent))
			continue;
		read_call(inlines, &inlined->die, &frames[count - 1]);
		if (count == room)
			break;
		if (!inlined->name)
			inlined->name = name_of(libdw, &inlined->die);
		frames[count++] = (struct symbol_frame){ .function = inlined->name, .is_inlined = true };
		level++;
	}
	reverse(frames, count);
	return count;
}
