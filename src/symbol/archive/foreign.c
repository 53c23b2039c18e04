/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which members of an archive are of another source than the object: those with a
 * string that the object does not have.
 *
 * The set of strings is a table of its own: it is asked once for each byte of the object's
 * data, for which base/hash_table.h takes four times as long.
 */
#include "symbol/archive/foreign.h"

#include <stdlib.h>

static uint32_t hash_back(uint32_t hash, unsigned char byte)
{
	return (hash + byte + 1) * UINT32_C(0x9e3779b1);
}

/* The strings of the archive, by hash, and which of them the object has. */
struct string_set {
	uint32_t *slots; /* 0: free */
	bool *is_seen;
	size_t capacity;
};

static size_t find_slot(const struct string_set *set, uint32_t hash)
{
	size_t slot = hash & (set->capacity - 1);
	while (set->slots[slot] && set->slots[slot] != hash)
		slot = (slot + 1) & (set->capacity - 1);
	return slot;
}

static bool has_strings(const struct code_section *section)
{
	return section->bytes && section->is_strings && section->unit == 1;
}

/* The next string of a section, and its hash; 0: an empty one, or the end. */
static uint32_t next_string(const struct code_section *section, uint64_t *at)
{
	uint64_t start = *at, end = start;
	uint32_t hash = 0;
	while (end < section->size && section->bytes[end])
		end++;
	for (*at = end + 1; end > start; end--)
		hash = hash_back(hash, section->bytes[end - 1]);
	return hash;
}

static bool collect_strings(const struct code_side *archive, struct string_set *set)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < archive->sections.count; i++)
		if (has_strings(&archive->sections.items[i]))
			bytes += archive->sections.items[i].size;
	/* Never full: a string has two bytes at least. */
	for (set->capacity = 1024; set->capacity < bytes; set->capacity *= 2)
		continue;
	set->slots = calloc(set->capacity, sizeof(*set->slots));
	set->is_seen = calloc(set->capacity, sizeof(*set->is_seen));
	for (uint32_t i = 0; set->slots && set->is_seen && i < archive->sections.count; i++) {
		const struct code_section *section = &archive->sections.items[i];
		for (uint64_t at = 0; has_strings(section) && at < section->size;) {
			uint32_t hash = next_string(section, &at);
			if (hash)
				set->slots[find_slot(set, hash)] = hash;
		}
	}
	return set->slots && set->is_seen;
}

/* Marks those that are in the object's data, at the end of a string there: linkers let
 * a string start within one that ends alike. Read from the back, each byte gives the
 * hash of one more. */
static void mark_strings(const struct code_side *object, struct string_set *set)
{
	for (uint32_t i = 0; i < object->sections.count; i++) {
		const struct code_section *section = &object->sections.items[i];
		uint32_t hash = 0;
		if (!section->bytes || section->is_code)
			continue;
		for (uint64_t at = section->size; at-- > 0;) {
			hash = section->bytes[at] ? hash_back(hash, section->bytes[at]) : 0;
			set->is_seen[find_slot(set, hash)] = true;
		}
	}
}

bool archive_find_foreign(const struct code_side *object, const struct code_side *archive, bool *is_foreign)
{
	struct string_set set = { 0 };
	bool good = collect_strings(archive, &set);
	if (good)
		mark_strings(object, &set);
	for (uint32_t i = 0; good && i < archive->sections.count; i++) {
		const struct code_section *section = &archive->sections.items[i];
		for (uint64_t at = 0; has_strings(section) && at < section->size;) {
			uint32_t hash = next_string(section, &at);
			if (hash && !set.is_seen[find_slot(&set, hash)])
				is_foreign[section->member] = true;
		}
	}
	free(set.slots);
	free(set.is_seen);
	return good;
}
