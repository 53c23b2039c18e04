/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined frames from DWARF through libdw.
 *
 * libdw's own dwarf_getscopes() reads the whole unit at each call. Here the first look-up
 * in a unit lists its functions, and each look-up then reads only the one that has the
 * address.
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

struct function {
	uint64_t start, end;
	Dwarf_Off die;
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

static bool add_ranges(struct inlines *inlines, Dwarf_Die *die, uint64_t *ranges_left)
{
	const struct libdw *libdw = inlines->libdw;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	while ((at = libdw->dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (!inlines_may_read(ranges_left))
			return false;
		if (start == 0 || start >= end) /* the linker dropped it */
			continue;
		const struct function function = { start, end, libdw->dwarf_dieoffset(die) };
		if (!vector_push(&inlines->functions, function))
			return false;
	}
	return true;
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

static bool collect_functions(struct inlines *inlines, struct walk *walk, Dwarf_Die *parent, unsigned depth,
                              uint64_t *ranges_left)
{
	Dwarf_Die child;
	if (depth == DEPTH_MAX || !first_child(walk, parent, &child))
		return true;
	do {
		int tag = walk->libdw->dwarf_tag(&child);
		if (tag == DW_TAG_subprogram && !add_ranges(inlines, &child, ranges_left))
			return false;
		if (may_hold_functions(tag) &&
		    !collect_functions(inlines, walk, &child, depth + 1, ranges_left))
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
	struct walk walk = { .libdw = libdw };
	if (!collect_functions(inlines, &walk, unit, 0, ranges_left)) {
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
	vector_free(&inlines->functions);
	free(inlines);
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

/* The inlined function in `parent`, at any depth of blocks, that has the address. */
static bool find_inlined(struct walk *walk, Dwarf_Die *parent, uint64_t address, Dwarf_Die *found,
                         unsigned depth)
{
	const struct libdw *libdw = walk->libdw;
	Dwarf_Die child;
	if (depth == DEPTH_MAX || !first_child(walk, parent, &child))
		return false;
	do {
		int tag = libdw->dwarf_tag(&child);
		if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
		    libdw->dwarf_haspc(&child, address) <= 0)
			continue;
		if (tag == DW_TAG_inlined_subroutine) {
			*found = child;
			return true;
		}
		if (find_inlined(walk, &child, address, found, depth + 1))
			return true;
	} while (next_sibling(walk, &child));
	return false;
}

static const struct function *find_function(const struct inlines *inlines, uint64_t address)
{
	const struct function *functions = inlines->functions.items;
	size_t before = SEARCH_COUNT(inlines->functions.count, i, functions[i].start <= address);
	return before && address < functions[before - 1].end ? &functions[before - 1] : NULL;
}

static void reverse(struct symbol_frame *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct symbol_frame frame = frames[i];
		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = frame;
	}
}

size_t inlines_find(struct inlines *inlines, uint64_t address, struct symbol_frame *frames, size_t room)
{
	const struct libdw *libdw = inlines->libdw;
	const struct function *function = find_function(inlines, address);
	Dwarf *dwarf = libdw->dwarf_cu_getdwarf(inlines->unit.cu);
	struct walk walk = { .libdw = libdw };
	Dwarf_Die die, inlined;
	if (!function || room == 0 || !libdw->dwarf_offdie(dwarf, function->die, &die))
		return 0;
	/* From the outermost on, as they are found. */
	size_t count = 0;
	frames[count++] = (struct symbol_frame){ .function = name_of(libdw, &die) };
	while (find_inlined(&walk, &die, address, &inlined, 0)) {
		read_call(inlines, &inlined, &frames[count - 1]);
		if (count == room)
			break;
		frames[count++] = (struct symbol_frame){
			.function = name_of(libdw, &inlined),
			.is_inlined = true,
		};
		die = inlined;
	}
	reverse(frames, count);
	return count;
}
