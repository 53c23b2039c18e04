/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares one function of the archive with one of the object.
 */
#include "symbol/archive/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define BLOCK_MAX 128u

/* --- locations that are known to be the same ------------------------------------------ */

bool locations_put(struct hash_table *locations, uint64_t location, uint64_t other)
{
	struct hash key = hash_words(&location, 1);
	struct location *known = hash_table_find(locations, key);
	if (!known && !(known = hash_table_add(locations, key)))
		return false;
	known->other = other;
	return true;
}

uint64_t locations_get(const struct hash_table *locations, uint64_t location)
{
	const struct location *known = hash_table_find(locations, hash_words(&location, 1));
	return known ? known->other : 0;
}

/* --- equal -------------------------------------------------------------------------- */

enum location_verdict { LOCATION_DIFFERS, LOCATION_MAY_BE, LOCATION_IS };

/* Constants that linkers merge have no location of their own, only content. */
static bool is_same_constant(const struct comparison *comparison, const struct code_section *section,
                             uint64_t archive, uint64_t object)
{
	uint64_t room = UINT64_MAX, other_room = UINT64_MAX;
	const unsigned char *bytes = side_bytes(comparison->archive, archive, &room);
	const unsigned char *other = side_bytes(comparison->object, object, &other_room);
	if (!bytes || !other)
		return false;
	uint64_t size = section->unit;
	if (section->is_strings && section->unit == 1)
		size = strnlen((const char *)bytes, (size_t)room) + 1;
	return size <= room && size <= other_room && memcmp(bytes, other, (size_t)size) == 0;
}

/* `left` is a reference of the archive's function, `right` one of the object's. */
static enum location_verdict compare_locations(const struct comparison *comparison, uint32_t archive_function,
                                               uint32_t object_function, const struct code_reference *left,
                                               const struct code_reference *right)
{
	uint64_t archive = left->target, object = right->target;
	uint32_t a = left->function, o = right->function;
	if (a == archive_function || o == object_function)
		return a == archive_function && o == object_function && archive == object ? LOCATION_IS
		                                                                          : LOCATION_DIFFERS;
	if (archive == 0 || object == 0)
		return LOCATION_DIFFERS;
	if ((archive | object) & ARCHIVE_EXTERN)
		return archive == object ? LOCATION_IS : LOCATION_DIFFERS;
	if (a != ARCHIVE_NONE || o != ARCHIVE_NONE) {
		if (a == ARCHIVE_NONE || o == ARCHIVE_NONE)
			return LOCATION_DIFFERS;
		bool is_start = comparison->archive->functions.items[a].address == archive;
		if (is_start != (comparison->object->functions.items[o].address == object))
			return LOCATION_DIFFERS;
		if (comparison->to_object[a] == o)
			return is_start || side_token(comparison->archive,
			                              &comparison->archive->functions.items[a], archive) ==
			                               side_token(comparison->object,
			                                          &comparison->object->functions.items[o],
			                                          object)
			               ? LOCATION_IS
			               : LOCATION_DIFFERS;
		return comparison->to_object[a] == ARCHIVE_NONE && comparison->to_archive[o] == ARCHIVE_NONE
		               ? LOCATION_MAY_BE
		               : LOCATION_DIFFERS;
	}
	const struct code_section *section = side_section(comparison->archive, archive);
	if (section && section->unit)
		return is_same_constant(comparison, section, archive, object) ? LOCATION_IS
		                                                              : LOCATION_DIFFERS;
	uint64_t known = locations_get(&comparison->data_to_object, archive);
	if (known)
		return known == object ? LOCATION_IS : LOCATION_DIFFERS;
	return locations_get(&comparison->data_to_archive, object) ? LOCATION_DIFFERS : LOCATION_MAY_BE;
}

static void add_guess(struct comparison *comparison, uint64_t archive, uint64_t object)
{
	const struct code_guess guess = { .archive = archive, .object = object };
	comparison->is_out_of_memory |= !vector_push(&comparison->guesses, guess);
}

/* The reference of that token; NULL when it names no location. */
static const struct code_reference *reference_at(const struct code_side *side,
                                                 const struct code_function *function, uint32_t token)
{
	const struct code_reference *references = side->references.items + function->reference;
	size_t at = SEARCH_COUNT(function->reference_count, i, references[i].token < token);
	return at < function->reference_count && references[at].token == token ? &references[at] : NULL;
}

/* Tokens [start, end) of a function: what runs without jump or call, and the jump or
 * call at its end. */
struct block {
	uint32_t start, end;
	bool has_slot;
};

static struct block find_block(const struct code_side *side, const struct code_function *function,
                               uint32_t token)
{
	struct block block = { .start = 0, .end = function->token_count };
	for (uint32_t i = 0; i < function->reference_count; i++) {
		const struct code_reference *reference = &side->references.items[function->reference + i];
		if (reference->is_branch && reference->token < token) {
			block.start = reference->token + 1;
			block.has_slot = false;
		} else if (reference->is_branch) {
			block.end = reference->token + 1;
			break;
		} else {
			block.has_slot |= reference->is_slot;
		}
	}
	return block;
}

/* Gives each of the archive's tokens in the block its equal among the object's, in
 * any order. The bigger the block, the longer it takes: a bound. */
static bool pair_block(struct comparison *comparison, const struct code_function *a,
                       const struct code_function *o, struct block block)
{
	const struct code_token *left = comparison->archive->tokens.items + a->token;
	const struct code_token *right = comparison->object->tokens.items + o->token;
	bool is_taken[BLOCK_MAX] = { false };
	if (block.end - block.start > BLOCK_MAX)
		return false;
	for (uint32_t i = block.start; i < block.end; i++) {
		uint32_t j = block.start;
		while (j < block.end && (is_taken[j - block.start] || left[i].hash != right[j].hash))
			j++;
		if (j == block.end)
			return false;
		is_taken[j - block.start] = true;
		comparison->partners.items[i] = j;
	}
	return true;
}

/* Gives each of the archive's tokens its equal among the object's. */
static bool pair_tokens(struct comparison *comparison, const struct code_function *a,
                        const struct code_function *o)
{
	const struct code_side *as = comparison->archive, *os = comparison->object;
	if (!vector_reserve(&comparison->partners, a->token_count)) {
		comparison->is_out_of_memory = true;
		return false;
	}
	for (uint32_t i = 0; i < a->token_count; i++) {
		comparison->partners.items[i] = i;
		if (as->tokens.items[a->token + i].hash == os->tokens.items[o->token + i].hash)
			continue;
		struct block block = find_block(as, a, i), other = find_block(os, o, i);
		if (block.start != other.start || block.end != other.end ||
		    !(block.has_slot || other.has_slot) || !pair_block(comparison, a, o, block))
			return false;
		i = block.end - 1;
	}
	return true;
}

COMPARE_BY_TWO(compare_guesses, struct code_guess, archive, object)

COMPARE_BY_TWO(compare_guesses_by_object, struct code_guess, object, archive)

/* Most functions guess a handful of locations: too few for qsort() to pay. */
static void sort_guesses(struct code_guess *guesses, uint32_t count,
                         int (*compare)(const void *, const void *))
{
	if (count > 16) {
		qsort(guesses, count, sizeof(*guesses), compare);
		return;
	}
	for (uint32_t i = 1; i < count; i++) {
		struct code_guess guess = guesses[i];
		uint32_t at = i;
		for (; at > 0 && compare(&guess, &guesses[at - 1]) < 0; at--)
			guesses[at] = guesses[at - 1];
		guesses[at] = guess;
	}
}

/* One location may not be two at once, on neither side. Leaves each guess once. */
static bool guesses_agree(struct comparison *comparison)
{
	struct code_guess *guesses = comparison->guesses.items;
	uint32_t count = comparison->guesses.count, kept = 1;
	if (count < 2)
		return true;
	sort_guesses(guesses, count, compare_guesses);
	for (uint32_t i = 1; i < count; i++) {
		if (guesses[i].archive != guesses[kept - 1].archive)
			guesses[kept++] = guesses[i];
		else if (guesses[i].object != guesses[kept - 1].object)
			return false;
	}
	comparison->guesses.count = kept;
	sort_guesses(guesses, kept, compare_guesses_by_object);
	for (uint32_t i = 1; i < kept; i++)
		if (guesses[i].object == guesses[i - 1].object)
			return false;
	return true;
}

bool compare_equal(struct comparison *comparison, uint32_t archive, uint32_t object, uint32_t *known)
{
	const struct code_side *as = comparison->archive, *os = comparison->object;
	const struct code_function *a = &as->functions.items[archive], *o = &os->functions.items[object];
	comparison->guesses.count = 0;
	*known = 0;
	if (a->is_strange || o->is_strange || a->sum != o->sum || a->token_count != o->token_count ||
	    a->reference_count != o->reference_count || !pair_tokens(comparison, a, o))
		return false;
	for (uint32_t i = 0; i < a->reference_count; i++) {
		const struct code_reference *left = &as->references.items[a->reference + i];
		const struct code_reference *right = &os->references.items[o->reference + i];
		if (right->token != comparison->partners.items[left->token])
			right = reference_at(os, o, comparison->partners.items[left->token]);
		if (!right)
			return false;
		enum location_verdict verdict = compare_locations(comparison, archive, object, left, right);
		if (verdict == LOCATION_DIFFERS)
			return false;
		if (verdict == LOCATION_MAY_BE)
			add_guess(comparison, left->target, right->target);
		else if (left->function != archive)
			++*known;
	}
	return guesses_agree(comparison);
}

/* --- surroundings -------------------------------------------------------------------- */

#define REACH 3u

struct surrounding {
	uint32_t hash;
	uint32_t reference;
};

COMPARE_BY(compare_surroundings, struct surrounding, hash)

static struct surrounding *find_surroundings(const struct code_side *side,
                                             const struct code_function *function)
{
	struct surrounding *found = malloc((function->reference_count + 1) * sizeof(*found));
	for (uint32_t i = 0; found && i < function->reference_count; i++) {
		uint32_t token = side->references.items[function->reference + i].token;
		uint32_t hash = UINT32_C(0x811c9dc5);
		for (uint32_t t = token < REACH ? 0 : token - REACH;
		     t <= token + REACH && t < function->token_count; t++)
			hash = (hash ^ side->tokens.items[function->token + t].hash) * UINT32_C(0x01000193) +
			       (t == token);
		found[i] = (struct surrounding){ .hash = hash, .reference = i };
	}
	if (found && function->reference_count)
		qsort(found, function->reference_count, sizeof(*found), compare_surroundings);
	return found;
}

static bool is_single(const struct surrounding *items, uint32_t count, uint32_t at)
{
	return (at == 0 || items[at - 1].hash != items[at].hash) &&
	       (at + 1 == count || items[at + 1].hash != items[at].hash);
}

void compare_context(struct comparison *comparison, uint32_t archive, uint32_t object)
{
	const struct code_side *as = comparison->archive, *os = comparison->object;
	const struct code_function *a = &as->functions.items[archive], *o = &os->functions.items[object];
	comparison->guesses.count = 0;
	if (a->is_strange || o->is_strange)
		return;
	struct surrounding *left = find_surroundings(as, a), *right = find_surroundings(os, o);
	for (uint32_t i = 0, j = 0; left && right && i < a->reference_count && j < o->reference_count;) {
		if (left[i].hash != right[j].hash) {
			if (left[i].hash < right[j].hash)
				i++;
			else
				j++;
			continue;
		}
		if (is_single(left, a->reference_count, i) && is_single(right, o->reference_count, j)) {
			const struct code_reference *from =
				&as->references.items[a->reference + left[i].reference];
			const struct code_reference *to =
				&os->references.items[o->reference + right[j].reference];
			if (compare_locations(comparison, archive, object, from, to) == LOCATION_MAY_BE)
				add_guess(comparison, from->target, to->target);
		}
		i++;
		j++;
	}
	comparison->is_out_of_memory |= !left || !right;
	free(left);
	free(right);
}
