/* SPDX-License-Identifier: Apache-2.0 */
#include "query/statement_table.h"

#include <string.h>

#include "base/text.h"

#define CHAINS 8192u /* a power of two */

#define OTHER STATEMENT_OTHER
#define NO_ENTRY UINT32_MAX

/* Parts of one statement: periods of its layout, and in all. */
#define PERIODS_MAX 8u
#define PARTS_MAX 24u

static uint32_t chains[CHAINS]; /* index of the first entry; 0: none, as "(other)" is in no chain */
static uint32_t first_free;     /* 0: none */
static uint64_t kept;           /* atomic */

uint64_t statement_table_kept(void)
{
	return __atomic_load_n(&kept, __ATOMIC_RELAXED);
}

bool statement_table_begin(void)
{
	struct statement_entry *other;

	if (statement_memory_made())
		return true;
	other = statement_memory_add();
	if (!other)
		return false;
	other->database = "";
	other->text = "(other)";
	return true;
}

static uint32_t acquire_free(void)
{
	uint32_t index = first_free;

	if (index) {
		first_free = entry_at(index)->next;
		return index;
	}
	return statement_memory_add() ? statement_memory_made() - 1 : NO_ENTRY;
}

static void give_free(uint32_t index)
{
	entry_at(index)->next = first_free;
	first_free = index;
}

static void free_texts(struct statement_entry *entry)
{
	const char *text = entry->text, *database = entry->database;

	entry->text = entry->database = NULL;
	statement_memory_free(text);
	statement_memory_free(database);
}

/* Up to `STATEMENT_TEXT_MAX` bytes, not inside a UTF-8 character. */
static const char *copy_text(const char *text, size_t size)
{
	return statement_memory_copy(text,
	                             size > STATEMENT_TEXT_MAX ? text_cut(text, STATEMENT_TEXT_MAX) : size);
}

void statement_table_link(uint32_t index)
{
	struct statement_entry *entry = entry_at(index);

	entry->next = chains[entry->hash & (CHAINS - 1)];
	chains[entry->hash & (CHAINS - 1)] = index;
}

static uint32_t add_entry(size_t most, uint64_t hash, const char *text, size_t size, const char *database,
                          const struct statement_part *part)
{
	uint32_t index = statement_table_kept() < most ? acquire_free() : NO_ENTRY;
	struct statement_entry *entry;
	const char *text_copy, *database_copy;

	if (index == NO_ENTRY)
		return OTHER;
	text_copy = copy_text(text, size);
	database_copy = statement_memory_copy(database, strlen(database));
	entry = entry_at(index);
	if (!text_copy || !database_copy) {
		statement_memory_free(text_copy);
		statement_memory_free(database_copy);
		give_free(index);
		return OTHER;
	}
	entry->database = database_copy;
	entry->hash = hash;
	entry->part = *part;
	/* Relaxed: a thread with the number of the entry's previous statement may still read it,
	 * and asks again then. */
	__atomic_store_n(&entry->is_over, false, __ATOMIC_RELAXED);
	entry->is_mixed = false;
	entry->is_cut = size > STATEMENT_TEXT_MAX;
	__atomic_store_n(&entry->text, text_copy, __ATOMIC_RELEASE);
	statement_table_link(index);
	__atomic_fetch_add(&kept, 1, __ATOMIC_RELAXED);
	return index;
}

/* The next entry of the statement from `i` on, 0: there are no more. */
static uint32_t next_of(uint32_t i, uint64_t hash, const char *database)
{
	while (i && (entry_at(i)->hash != hash || strcmp(entry_at(i)->database, database)))
		i = entry_at(i)->next;
	return i;
}

/* What the table has of a statement, newest first. */
struct parts {
	uint32_t same;   /* the part itself; OTHER: there is none */
	uint32_t newest; /* with these labels and another layout; OTHER: none */
	uint32_t count, periods;
	bool is_mixed;
};

static struct parts find_parts(uint64_t hash, const char *database, const struct statement_part *part)
{
	struct parts parts = { OTHER, OTHER, 0, 0, false };

	for (uint32_t i = next_of(chains[hash & (CHAINS - 1)], hash, database); i;
	     i = next_of(entry_at(i)->next, hash, database)) {
		const struct statement_entry *entry = entry_at(i);

		parts.count++;
		if (entry->part.labels != part->labels)
			continue;
		parts.periods += entry->part.layout != 0;
		parts.is_mixed |= entry->is_mixed;
		if (entry->part.layout == part->layout && !entry->is_over)
			parts.same = i;
		else if (entry->part.layout && part->layout && !entry->is_over)
			parts.newest = i;
	}
	return parts;
}

/* Layouts that alternate are not changes of the plan: from here on each has one part. */
static void mix(uint64_t hash, const char *database, uint64_t labels)
{
	uint32_t i = next_of(chains[hash & (CHAINS - 1)], hash, database);

	for (; i; i = next_of(entry_at(i)->next, hash, database)) {
		struct statement_entry *entry = entry_at(i);

		if (entry->part.labels == labels) {
			entry->is_mixed = true;
			__atomic_store_n(&entry->is_over, false, __ATOMIC_RELAXED);
		}
	}
}

void statement_table_unlink(uint32_t index)
{
	uint32_t *at = &chains[entry_at(index)->hash & (CHAINS - 1)];

	while (*at != index)
		at = &entry_at(*at)->next;
	*at = entry_at(index)->next;
}

uint32_t statement_table_first(uint64_t hash, const char *database)
{
	return next_of(chains[hash & (CHAINS - 1)], hash, database);
}

uint32_t statement_table_next(uint32_t index)
{
	const struct statement_entry *entry = entry_at(index);

	return next_of(entry->next, entry->hash, entry->database);
}

void statement_table_free(uint32_t index)
{
	free_texts(entry_at(index));
	give_free(index);
	__atomic_fetch_sub(&kept, 1, __ATOMIC_RELAXED);
}

uint32_t statement_table_find(size_t most, uint64_t hash, const char *text, size_t size, const char *database,
                              struct statement_part part)
{
	struct parts parts = find_parts(hash, database, &part);
	bool has_room = parts.count < PARTS_MAX && statement_table_kept() < most / 2;
	uint32_t index;

	if (parts.same == OTHER && part.layout && !parts.is_mixed && parts.periods >= PERIODS_MAX) {
		mix(hash, database, part.labels);
		parts = find_parts(hash, database, &part);
	}
	if (parts.same != OTHER)
		return parts.same;
	if (parts.count && !has_room) {
		part = (struct statement_part){ .layout = 0 };
		parts = find_parts(hash, database, &part);
		if (parts.same != OTHER)
			return parts.same;
	}
	part.period = parts.is_mixed ? 0 : parts.periods;
	index = add_entry(most, hash, text, size, database, &part);
	if (index != OTHER && parts.newest != OTHER && !parts.is_mixed)
		__atomic_store_n(&entry_at(parts.newest)->is_over, true, __ATOMIC_RELAXED);
	if (index != OTHER)
		entry_at(index)->is_mixed = parts.is_mixed;
	return index;
}

void statement_table_reset_in_child(void)
{
	memset(chains, 0, sizeof(chains));
	first_free = 0;
	kept = 0;
}
