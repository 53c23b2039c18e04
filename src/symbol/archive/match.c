/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which function of an archive is which one of the object.
 *
 * The two were compiled from one source, but not the same way: libraries with
 * -fPIC, archives without, which changes calls, access to data and what is
 * inlined. So bytes differ, and the order of functions may. A name is given only
 * when it is proven; each step rests on those before:
 *
 *   1. Archive and object belong together: every exported function is in the
 *      archive, constants that both export have the same content, no string of the
 *      archive is missing in the object, and at least half of the exported
 *      functions are equal, instruction by instruction. The exported functions are
 *      the first pairs.
 *   2. Functions and data that a pair names at the same point are a pair too, when they are equal.
 *      Data pairs when its content is the same; pointers to functions in it (tables
 *      of methods) then say which function is which.
 *   3. A function that nothing names in that way pairs with the only one left that
 *      is equal.
 *   4. In the end all pairs must agree with each other.
 *
 * Functions that are merely alike get no name. To allow it was tried: libsqlite3
 * then has 2 % more names, but also names for functions whose constants or
 * operators were changed on purpose. Without, 90 % of its static functions have one.
 *
 * The linker keeps the code of a member in one piece, so a function of a member can
 * only lie between the neighbours' exported ones.
 */
#include "symbol/archive/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "symbol/archive/compare.h"
#include "symbol/archive/foreign.h"
/* Shorter functions that name nothing are equal by chance. */
#define TOKENS_ALONE 12u

/* Comparisons of all with all that one section may take: some 50 ms. */
#define PAIRS_MAX (UINT64_C(1) << 24)

enum pair_state {
	PAIR_NONE,
	PAIR_GIVEN, /* by its exported name */
	PAIR_EQUAL,
	PAIR_DOUBTFUL, /* two proofs contradict each other: never a name */
};

/* Where in the object the code of a section of the archive can be. */
struct extent {
	uint64_t start, end; /* of what is known */
	uint64_t low, high;  /* with the room to its neighbours */
};

struct matcher {
	struct comparison comparison;
	uint8_t *states;                          /* of the archive's functions */
	bool *is_explored;                        /* of the archive's functions */
	struct extent *extents;                   /* of the archive's sections */
	uint32_t *archive_by_sum, *object_by_sum; /* functions, those that can be equal together */
	bool *is_foreign;                         /* members compiled from something else */
	VECTOR(struct code_guess) guesses;        /* to be judged */
	bool has_changed;
};

static void push_guess(struct matcher *matcher, struct code_guess guess)
{
	matcher->comparison.is_out_of_memory |= !vector_push(&matcher->guesses, guess);
}

static void pair(struct matcher *matcher, uint32_t archive, uint32_t object, enum pair_state state)
{
	matcher->comparison.to_object[archive] = object;
	matcher->comparison.to_archive[object] = archive;
	matcher->states[archive] = (uint8_t)state;
	matcher->has_changed = true;
}

/* --- 1: do they belong together ------------------------------------------------------ */

static bool has_same_constants(const struct code_side *object, const struct code_side *archive)
{
	for (uint32_t i = 0; i < object->objects.count; i++) {
		const struct code_symbol *data = &object->objects.items[i];
		const struct code_symbol *other = side_global(archive, data->name);
		const struct code_section *section = side_section(object, data->address);
		if (!other || !data->is_global || !section || section->is_writable || !section->bytes)
			continue;
		uint64_t size = data->size, other_size = data->size;
		const unsigned char *bytes = side_bytes(object, data->address, &size);
		const unsigned char *others = side_bytes(archive, other->address, &other_size);
		if (other->size != data->size || !others || size != other_size ||
		    memcmp(bytes, others, (size_t)size) != 0)
			return false;
	}
	return true;
}

static bool pair_exported(struct matcher *matcher)
{
	const struct code_side *object = matcher->comparison.object;
	const struct code_side *archive = matcher->comparison.archive;
	for (uint32_t i = 0; i < object->globals.count; i++) {
		const struct code_symbol *symbol = &object->globals.items[i];
		if (!symbol->is_function)
			continue;
		const struct code_symbol *other = side_global(archive, symbol->name);
		if (!other || !other->is_function)
			return false;
		uint32_t a = side_function(archive, other->address);
		uint32_t o = side_function(object, symbol->address);
		if (a == ARCHIVE_NONE || o == ARCHIVE_NONE ||
		    archive->functions.items[a].address != other->address ||
		    object->functions.items[o].address != symbol->address)
			continue;
		if (matcher->comparison.to_object[a] == ARCHIVE_NONE &&
		    matcher->comparison.to_archive[o] == ARCHIVE_NONE)
			pair(matcher, a, o, PAIR_GIVEN);
	}
	return true;
}

static bool are_mostly_equal(struct matcher *matcher)
{
	uint32_t given = 0, equal = 0, known;
	for (uint32_t i = 0; i < matcher->comparison.archive->functions.count; i++)
		if (matcher->states[i] == PAIR_GIVEN) {
			given++;
			equal += compare_equal(&matcher->comparison, i, matcher->comparison.to_object[i],
			                       &known);
		}
	return given >= 2 && equal * 2 >= given;
}

/* --- the extents of members ------------------------------------------------------------ */

struct piece {
	uint64_t start, end;
	uint32_t section;
};

COMPARE_BY(compare_pieces, struct piece, start)

static bool find_extents(struct matcher *matcher)
{
	const struct code_side *archive = matcher->comparison.archive;
	struct piece *pieces = calloc(archive->sections.count + 1, sizeof(*pieces));
	if (!pieces)
		return false;
	for (uint32_t i = 0; i < archive->functions.count; i++) {
		const struct code_function *function = &archive->functions.items[i];
		if (matcher->states[i] != PAIR_GIVEN)
			continue;
		const struct code_function *object =
			&matcher->comparison.object->functions.items[matcher->comparison.to_object[i]];
		struct extent *extent = &matcher->extents[function->section];
		if (extent->end == 0 || object->address < extent->start)
			extent->start = object->address;
		if (object->address + object->size > extent->end)
			extent->end = object->address + object->size;
	}
	uint32_t count = 0;
	for (uint32_t i = 0; i < archive->sections.count; i++)
		if (matcher->extents[i].end)
			pieces[count++] = (struct piece){ .start = matcher->extents[i].start,
				                          .end = matcher->extents[i].end,
				                          .section = i };
	if (count)
		qsort(pieces, count, sizeof(*pieces), compare_pieces);
	for (uint32_t i = 0; i < count; i++) {
		struct extent *extent = &matcher->extents[pieces[i].section];
		extent->low = i ? pieces[i - 1].end : 0;
		extent->high = i + 1 < count ? pieces[i + 1].start : UINT64_MAX;
		/* Pieces within each other: not the layout of one link. */
		if (extent->low > extent->start || extent->high < extent->end)
			extent->low = extent->high = 0;
	}
	free(pieces);
	return true;
}

/* May the archive's function be that one, by its location? Sections without exported
 * function (.text.unlikely) may be anywhere. */
static bool may_be_at(const struct matcher *matcher, uint32_t archive, uint32_t object)
{
	const struct extent *extent =
		&matcher->extents[matcher->comparison.archive->functions.items[archive].section];
	const struct code_function *function = &matcher->comparison.object->functions.items[object];
	return !extent->end ||
	       (function->address >= extent->low && function->address + function->size <= extent->high);
}

/* --- members from another source ---------------------------------------------------------- */

/* One member of another source: the whole archive is of another version. Members
 * that were not linked into the object say nothing. */
static bool has_foreign_part(const struct matcher *matcher)
{
	const struct code_side *archive = matcher->comparison.archive;
	for (uint32_t i = 0; i < archive->sections.count; i++)
		if (matcher->extents[i].end && matcher->is_foreign[archive->sections.items[i].member])
			return true;
	return false;
}

/* --- 2: what pairs name ------------------------------------------------------------------ */

static void push_guesses(struct matcher *matcher)
{
	for (uint32_t i = 0; i < matcher->comparison.guesses.count; i++)
		push_guess(matcher, matcher->comparison.guesses.items[i]);
}

static void judge_function(struct matcher *matcher, uint32_t archive, uint32_t object)
{
	struct comparison *comparison = &matcher->comparison;
	uint32_t rival = comparison->to_archive[object], known;
	if (comparison->to_object[archive] == object)
		return;
	if (comparison->to_object[archive] != ARCHIVE_NONE || rival != ARCHIVE_NONE) {
		/* An exported name is beyond doubt, and wins. */
		if (matcher->states[archive] != PAIR_GIVEN)
			matcher->states[archive] = PAIR_DOUBTFUL;
		if (rival != ARCHIVE_NONE && matcher->states[rival] != PAIR_GIVEN)
			matcher->states[rival] = PAIR_DOUBTFUL;
	} else if (matcher->states[archive] == PAIR_NONE && may_be_at(matcher, archive, object) &&
	           compare_equal(comparison, archive, object, &known)) {
		pair(matcher, archive, object, PAIR_EQUAL);
	}
}

static uint32_t first_relocation(const struct code_side *side, uint64_t location)
{
	return (uint32_t)SEARCH_COUNT(side->relocations.count, i,
	                              side->relocations.items[i].location < location);
}

/* Whether the object's data has the content of the archive's, apart from pointers,
 * and a pointer where that has one. */
static bool has_same_content(const struct matcher *matcher, const struct code_symbol *data, uint64_t object)
{
	const struct code_side *as = matcher->comparison.archive, *os = matcher->comparison.object;
	const struct code_section *section = side_section(as, data->address);
	const struct code_section *other = side_section(os, object);
	if (!section || !other || other->is_code || object - other->address + data->size > other->size)
		return false;
	if (!section->bytes || !other->bytes)
		return section->bytes == other->bytes;
	const unsigned char *a = section->bytes + (data->address - section->address);
	const unsigned char *o = other->bytes + (object - other->address);
	uint64_t at = 0;
	for (uint32_t i = first_relocation(as, data->address); at < data->size; i++) {
		uint64_t next = i < as->relocations.count &&
		                                as->relocations.items[i].location - data->address < data->size
		                        ? as->relocations.items[i].location - data->address
		                        : data->size;
		if (next > at && memcmp(a + at, o + at, (size_t)(next - at)) != 0)
			return false;
		if (next < data->size && !side_relocation(os, object + next))
			return false;
		at = next + 8;
	}
	return true;
}

static void judge_data(struct matcher *matcher, uint64_t archive, uint64_t object)
{
	struct comparison *comparison = &matcher->comparison;
	if (locations_get(&comparison->data_to_object, archive) ||
	    locations_get(&comparison->data_to_archive, object))
		return;
	const struct code_section *section = side_section(comparison->archive, archive);
	if (section && section->unit)
		return; /* merged constants have no location of their own */
	const struct code_symbol *data = side_object(comparison->archive, archive);
	uint64_t start = data ? object - (archive - data->address) : object;
	if (data && !has_same_content(matcher, data, start))
		return;
	comparison->is_out_of_memory |= !locations_put(&comparison->data_to_object, archive, object) ||
	                                !locations_put(&comparison->data_to_archive, object, archive);
	matcher->has_changed = true;
	if (!data)
		return;
	for (uint32_t i = first_relocation(comparison->archive, data->address);
	     i < comparison->archive->relocations.count; i++) {
		const struct code_relocation *from = &comparison->archive->relocations.items[i];
		if (from->location - data->address >= data->size)
			break;
		const struct code_relocation *to =
			side_relocation(comparison->object, start + (from->location - data->address));
		if (to && from->value && !((to->value | from->value) & ARCHIVE_EXTERN))
			push_guess(matcher,
			           (struct code_guess){ .archive = from->value, .object = to->value });
	}
}

static void judge_guess(struct matcher *matcher, struct code_guess guess)
{
	const struct code_side *as = matcher->comparison.archive, *os = matcher->comparison.object;
	uint32_t a = side_function(as, guess.archive), o = side_function(os, guess.object);
	if (a == ARCHIVE_NONE && o == ARCHIVE_NONE)
		judge_data(matcher, guess.archive, guess.object);
	else if (a != ARCHIVE_NONE && o != ARCHIVE_NONE && as->functions.items[a].address == guess.archive &&
	         os->functions.items[o].address == guess.object)
		judge_function(matcher, a, o);
}

/* Judging adds guesses behind. A guess that is refused now would be refused later. */
static void judge_guesses(struct matcher *matcher)
{
	for (uint32_t i = 0; i < matcher->guesses.count; i++)
		judge_guess(matcher, matcher->guesses.items[i]);
	matcher->guesses.count = 0;
}

/* Collects what pairs name, once for each. */
static void explore_pairs(struct matcher *matcher)
{
	struct comparison *comparison = &matcher->comparison;
	uint32_t known;
	for (uint32_t i = 0; i < comparison->archive->functions.count; i++) {
		uint32_t object = comparison->to_object[i];
		if (object == ARCHIVE_NONE || matcher->is_explored[i])
			continue;
		matcher->is_explored[i] = true;
		if (!compare_equal(comparison, i, object, &known))
			compare_context(comparison, i, object);
		push_guesses(matcher);
	}
}

/* --- 3: what is left ----------------------------------------------------------------------- */

/* A range of functions of one side: they are in the order of their addresses. */
struct range {
	uint32_t first, end;
};

static struct range find_range(const struct code_side *side, uint64_t start, uint64_t end)
{
	const struct code_function *functions = side->functions.items;
	return (struct range){
		.first = (uint32_t)SEARCH_COUNT(side->functions.count, i, functions[i].address < start),
		.end = (uint32_t)SEARCH_COUNT(side->functions.count, i, functions[i].address < end),
	};
}

static bool is_unpaired(const struct matcher *matcher, uint32_t archive)
{
	return matcher->states[archive] == PAIR_NONE &&
	       !matcher->comparison.archive->functions.items[archive].is_strange;
}

static int compare_sums(const void *left, const void *right, void *functions)
{
	const uint32_t *a = left, *b = right;
	uint32_t sum = ((struct code_function *)functions)[*a].sum;
	uint32_t other = ((struct code_function *)functions)[*b].sum;
	if (sum != other)
		return sum < other ? -1 : 1;
	return (*a > *b) - (*a < *b);
}

static uint32_t *sort_by_sum(const struct code_side *side)
{
	uint32_t *order = malloc((side->functions.count + 1) * sizeof(*order));
	for (uint32_t i = 0; order && i < side->functions.count; i++)
		order[i] = i;
	if (order && side->functions.count)
		qsort_r(order, side->functions.count, sizeof(*order), compare_sums, side->functions.items);
	return order;
}

/* Where in the order the functions with that sum begin. */
static uint32_t first_of_sum(const struct code_side *side, const uint32_t *order, uint32_t sum)
{
	return (uint32_t)SEARCH_COUNT(side->functions.count, i, side->functions.items[order[i]].sum < sum);
}

static bool is_in(struct range range, uint32_t function)
{
	return function >= range.first && function < range.end;
}

/* How many of the object's functions that are left equal the archive's one, and the
 * other way round; the last one seen, and how much of it is known to be the same. */
static uint32_t count_equal(struct matcher *matcher, uint32_t archive, struct range range, uint32_t *object,
                            uint32_t *known)
{
	const struct code_side *side = matcher->comparison.object;
	uint32_t sum = matcher->comparison.archive->functions.items[archive].sum, count = 0, now_known;
	for (uint32_t k = first_of_sum(side, matcher->object_by_sum, sum);
	     k < side->functions.count && count < 2; k++) {
		uint32_t i = matcher->object_by_sum[k];
		if (side->functions.items[i].sum != sum)
			break;
		if (is_in(range, i) && matcher->comparison.to_archive[i] == ARCHIVE_NONE &&
		    may_be_at(matcher, archive, i) &&
		    compare_equal(&matcher->comparison, archive, i, &now_known)) {
			*object = i;
			*known = now_known;
			count++;
		}
	}
	return count;
}

static uint32_t count_rivals(struct matcher *matcher, struct range range, uint32_t object)
{
	const struct code_side *side = matcher->comparison.archive;
	uint32_t sum = matcher->comparison.object->functions.items[object].sum, count = 0, known;
	for (uint32_t k = first_of_sum(side, matcher->archive_by_sum, sum);
	     k < side->functions.count && count < 2; k++) {
		uint32_t i = matcher->archive_by_sum[k];
		if (side->functions.items[i].sum != sum)
			break;
		count += is_in(range, i) && is_unpaired(matcher, i) &&
		         compare_equal(&matcher->comparison, i, object, &known);
	}
	return count;
}

static void pair_rest_of_section(struct matcher *matcher, const struct code_section *section,
                                 const struct extent *extent)
{
	const struct comparison *comparison = &matcher->comparison;
	struct range archive =
		find_range(comparison->archive, section->address, section->address + section->size);
	struct range object = find_range(comparison->object, extent->low, extent->high);
	if ((uint64_t)(archive.end - archive.first) * (object.end - object.first) > PAIRS_MAX)
		return;
	for (uint32_t i = archive.first; i < archive.end; i++) {
		uint32_t found = ARCHIVE_NONE, known = 0;
		if (!is_unpaired(matcher, i) || count_equal(matcher, i, object, &found, &known) != 1 ||
		    count_rivals(matcher, archive, found) != 1)
			continue;
		if (known || comparison->archive->functions.items[i].token_count >= TOKENS_ALONE)
			pair(matcher, i, found, PAIR_EQUAL);
	}
}

static void pair_rest(struct matcher *matcher)
{
	const struct code_side *archive = matcher->comparison.archive;
	for (uint32_t i = 0; i < archive->sections.count; i++)
		if (matcher->extents[i].end)
			pair_rest_of_section(matcher, &archive->sections.items[i], &matcher->extents[i]);
}

/* --- 4: do all pairs agree ------------------------------------------------------------------ */

/* A pair was equal as far as was known then. Dropping one can only take knowledge
 * away from others, so this ends. */
static void drop_contradictions(struct matcher *matcher)
{
	struct comparison *comparison = &matcher->comparison;
	uint32_t known;
	for (uint32_t i = 0; i < comparison->archive->functions.count; i++)
		if (matcher->states[i] == PAIR_EQUAL &&
		    !compare_equal(comparison, i, comparison->to_object[i], &known))
			matcher->states[i] = PAIR_DOUBTFUL;
}

/* ------------------------------------------------------------------------------------------ */

static void explore_all(struct matcher *matcher)
{
	do {
		matcher->has_changed = false;
		explore_pairs(matcher);
		judge_guesses(matcher);
	} while (matcher->has_changed && !matcher->comparison.is_out_of_memory);
}

static void pair_exported_data(struct matcher *matcher)
{
	const struct code_side *object = matcher->comparison.object;
	for (uint32_t i = 0; i < object->objects.count; i++) {
		const struct code_symbol *other =
			side_global(matcher->comparison.archive, object->objects.items[i].name);
		if (other && object->objects.items[i].is_global)
			push_guess(matcher,
			           (struct code_guess){ .archive = other->address,
			                                .object = object->objects.items[i].address });
	}
}

static bool run(struct matcher *matcher, struct code_side *object, struct code_side *archive)
{
	const struct comparison *comparison = &matcher->comparison;
	if (!has_same_constants(comparison->object, comparison->archive) || !pair_exported(matcher) ||
	    !side_decode(archive) || !side_decode(object) || !are_mostly_equal(matcher) ||
	    !find_extents(matcher) || !archive_find_foreign(object, archive, matcher->is_foreign) ||
	    has_foreign_part(matcher))
		return false;
	matcher->archive_by_sum = sort_by_sum(comparison->archive);
	matcher->object_by_sum = sort_by_sum(comparison->object);
	if (!matcher->archive_by_sum || !matcher->object_by_sum)
		return false;
	pair_exported_data(matcher);
	do {
		explore_all(matcher);
		matcher->has_changed = false;
		pair_rest(matcher);
	} while (matcher->has_changed && !comparison->is_out_of_memory);
	drop_contradictions(matcher);
	return !comparison->is_out_of_memory;
}

uint32_t *archive_match(struct code_side *object, struct code_side *archive)
{
	struct matcher matcher = { .comparison = { .object = object,
		                                   .archive = archive,
		                                   .data_to_object = LOCATIONS,
		                                   .data_to_archive = LOCATIONS } };
	struct comparison *comparison = &matcher.comparison;
	comparison->to_object = malloc((archive->functions.count + 1) * sizeof(uint32_t));
	comparison->to_archive = malloc((object->functions.count + 1) * sizeof(uint32_t));
	matcher.states = calloc(archive->functions.count + 1, sizeof(*matcher.states));
	matcher.is_explored = calloc(archive->functions.count + 1, sizeof(*matcher.is_explored));
	matcher.extents = calloc(archive->sections.count + 1, sizeof(*matcher.extents));
	matcher.is_foreign = calloc(archive->member_count + 1, sizeof(*matcher.is_foreign));
	bool good = comparison->to_object && comparison->to_archive && matcher.states &&
	            matcher.is_explored && matcher.extents && matcher.is_foreign;
	if (good) {
		memset(comparison->to_object, 0xff, archive->functions.count * sizeof(uint32_t));
		memset(comparison->to_archive, 0xff, object->functions.count * sizeof(uint32_t));
		good = run(&matcher, object, archive);
	}
	for (uint32_t i = 0; good && i < archive->functions.count; i++)
		if (matcher.states[i] == PAIR_DOUBTFUL)
			comparison->to_object[i] = ARCHIVE_NONE;
	free(comparison->to_archive);
	vector_free(&comparison->guesses);
	vector_free(&comparison->partners);
	hash_table_free(&comparison->data_to_object);
	hash_table_free(&comparison->data_to_archive);
	free(matcher.states);
	free(matcher.is_explored);
	free(matcher.extents);
	free(matcher.archive_by_sum);
	free(matcher.object_by_sum);
	free(matcher.is_foreign);
	vector_free(&matcher.guesses);
	if (good)
		return comparison->to_object;
	free(comparison->to_object);
	return NULL;
}
