/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared memory: a front, blocks of entries, then texts. The size of a text is a power of two,
 * and the code that frees it computes the size again.
 *
 * A process may be killed at any instruction, and others read the memory at any moment, so changes
 * are ordered: a text is set after the rest of its entry.
 */
#include "wire/statement_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/free_later.h"

#define TEXT_BYTES 512u /* of a statement, on average */
#define TEXT_CLASS_MIN 5
#define TEXT_CLASSES 15 /* below 2^15 bytes */

struct memory {
	uint64_t here; /* its address in the process that counts */
	uint32_t blocks;
	uint32_t made;  /* atomic: entries that were ever in use */
	uint64_t folds; /* atomic; statement_memory_folds() */
	uint64_t texts_end, size;
	uint64_t free_texts[TEXT_CLASSES]; /* offsets of the first one, 0: none */
};

#define BLOCK_BYTES (STATEMENT_BLOCK * sizeof(struct statement_entry))
#define FRONT_BYTES ((sizeof(struct memory) + 63) / 64 * 64)

struct statement_entry *statement_blocks[STATEMENT_BLOCKS];
static struct memory private_memory, *memory = &private_memory;

/* Generations of a forked child begin after those of its parent. */
static uint32_t first_generation = 1;

static size_t texts_offset(uint32_t blocks)
{
	return FRONT_BYTES + blocks * BLOCK_BYTES;
}

/* --- placing -------------------------------------------------------------------------------- */

static uint32_t blocks_for(size_t most)
{
	return (uint32_t)((most < STATEMENTS_MAX_MOST ? most : STATEMENTS_MAX_MOST) / STATEMENT_BLOCK) + 1;
}

size_t statement_memory_bytes(size_t most)
{
	uint32_t blocks = blocks_for(most);

	return texts_offset(blocks) + (size_t)blocks * STATEMENT_BLOCK * TEXT_BYTES;
}

void statement_memory_attach(void *at, size_t size)
{
	memory = at;
	memory->here = (uintptr_t)at;
	memory->blocks = (uint32_t)((size - FRONT_BYTES) / (BLOCK_BYTES + STATEMENT_BLOCK * TEXT_BYTES));
	memory->texts_end = texts_offset(memory->blocks);
	memory->size = size;
}

static bool has_none; /* no memory for entries */

void statement_memory_detach_in_child(void)
{
	/* Runs of the parent may look here for theirs. */
	static struct statement_entry none[STATEMENT_BLOCK];

	for (uint32_t i = 0; i < STATEMENT_BLOCKS && statement_blocks[i]; i++)
		statement_blocks[i] = none;
	memory = &private_memory;
	has_none = true;
}

static bool is_shared(const void *at)
{
	return (uintptr_t)at - (uintptr_t)memory < memory->size;
}

/* --- entries -------------------------------------------------------------------------------- */

uint32_t statement_memory_made(void)
{
	/* Acquire: the entries were made before. */
	return __atomic_load_n(&memory->made, __ATOMIC_ACQUIRE);
}

static struct statement_entry *make_block(uint32_t block)
{
	struct statement_entry *made = __atomic_load_n(&statement_blocks[block], __ATOMIC_RELAXED);

	if (made)
		return made;
	if (block < memory->blocks)
		made = (struct statement_entry *)((char *)memory + FRONT_BYTES + block * BLOCK_BYTES);
	else
		made = calloc(STATEMENT_BLOCK, sizeof(*made));
	if (made)
		__atomic_store_n(&statement_blocks[block], made, __ATOMIC_RELEASE);
	return made;
}

struct statement_entry *statement_memory_add(void)
{
	uint32_t index = memory->made;
	struct statement_entry *block;

	if (has_none || index >= STATEMENT_BLOCKS * STATEMENT_BLOCK ||
	    !(block = make_block(index / STATEMENT_BLOCK)))
		return NULL;
	block[index % STATEMENT_BLOCK].counter.generation = first_generation;
	__atomic_store_n(&memory->made, index + 1, __ATOMIC_RELEASE);
	return &block[index % STATEMENT_BLOCK];
}

/* Texts in shared memory remained with the parent's. The private texts of its entries can no
 * longer be found, and are not freed. */
static void leave_private(const char *text) /* of statement_memory_copy() */
{
	if (text && !is_shared(text))
		free_later((char *)text, FREE_LATER_MIN);
}

static void clear(struct statement_entry *block, uint32_t number)
{
	for (uint32_t i = number == 0; i < STATEMENT_BLOCK; i++) { /* the texts of the first are constants */
		leave_private(block[i].text);
		leave_private(block[i].database);
	}
	memset(block, 0, BLOCK_BYTES);
}

void statement_memory_reset_in_child(void)
{
	first_generation += 1u << 16; /* more than an entry goes through */
	for (uint32_t i = 0; i < STATEMENT_BLOCKS && statement_blocks[i]; i++)
		if (!is_shared(statement_blocks[i]))
			clear(statement_blocks[i], i);
	memory->made = 0;
}

/* --- texts ------------------------------------------------------------------------------------ */

static int text_class(size_t size)
{
	int class = size > 1 ? 64 - __builtin_clzl(size - 1) : 0;

	return class > TEXT_CLASS_MIN ? class : TEXT_CLASS_MIN;
}

static void *acquire_shared(int class)
{
	uint64_t at = memory->free_texts[class];

	if (at) {
		memory->free_texts[class] = *(uint64_t *)((char *)memory + at);
	} else if (memory->size - memory->texts_end >= 1u << class) {
		at = memory->texts_end;
		memory->texts_end += 1u << class;
	}
	return at ? (char *)memory + at : NULL;
}

const char *statement_memory_copy(const char *text, size_t size)
{
	int class = text_class(size + 1);
	char *copy = class < TEXT_CLASSES ? acquire_shared(class) : NULL;

	if (!copy)
		copy = malloc(size < FREE_LATER_MIN ? FREE_LATER_MIN : size + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	return copy;
}

void statement_memory_free(const char *text)
{
	int class;

	if (!text || !is_shared(text)) {
		free((char *)text);
		return;
	}
	class = text_class(strlen(text) + 1);
	*(uint64_t *)text = memory->free_texts[class];
	memory->free_texts[class] = (uintptr_t)text - (uintptr_t)memory;
}

/* --- folding -------------------------------------------------------------------------------------- */

__attribute__((no_sanitize("thread"))) /* it knows no fences */
void
statement_memory_begin_fold(void)
{
	__atomic_store_n(&memory->folds, memory->folds + 1, __ATOMIC_RELAXED);
	/* Before the content is overwritten. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

void statement_memory_end_fold(void)
{
	__atomic_store_n(&memory->folds, memory->folds + 1, __ATOMIC_RELEASE);
}

uint64_t statement_memory_folds(const void *at)
{
	return ((const struct memory *)at)->folds;
}

/* --- what a reader has stored ---------------------------------------------------------------------- */

bool statement_reading_follow(struct statement_reading *reading, uint32_t index, uint32_t generation)
{
	struct statement_read *read = vector_at(&reading->entries, index);

	if (!read)
		return false;
	if (read->generation != generation && index != STATEMENT_OTHER) {
		statement_counts_add(&reading->entries.items[STATEMENT_OTHER].counts, &read->counts);
		memset(&read->counts, 0, sizeof(read->counts));
	}
	read->generation = generation;
	return true;
}

static bool has_grown(const struct statement_counts *now, const struct statement_counts *before)
{
	for (int i = 0; i < STATEMENT_SUMS; i++)
		if (now->sums[i] < before->sums[i])
			return false;
	/* All of them: a run that ended meanwhile may have been in the previous sums, but not in
	 * the histogram. */
	return !statement_counts_are_same(now, before);
}

bool statement_reading_since(const struct statement_reading *reading, uint32_t index,
                             const struct statement_counts *now, struct statement_counts *since)
{
	const struct statement_counts *before = &reading->entries.items[index].counts;

	if (!has_grown(now, before))
		return false;
	*since = *now;
	statement_counts_subtract(since, before);
	return true;
}

void statement_reading_keep(struct statement_reading *reading, uint32_t index,
                            const struct statement_counts *now)
{
	struct statement_read *read = &reading->entries.items[index];

	read->newer = *now;
	read->is_newer = reading->has_newer = true;
}

void statement_reading_commit(struct statement_reading *reading, bool is_stored)
{
	for (size_t i = 0; reading->has_newer && i < reading->entries.count; i++) {
		struct statement_read *read = &reading->entries.items[i];

		if (read->is_newer && is_stored)
			read->counts = read->newer;
		read->is_newer = false;
	}
	reading->has_newer = false;
}

void statement_reading_reset(struct statement_reading *reading)
{
	reading->entries.count = 0;
	reading->has_newer = false;
}

void statement_reading_free(struct statement_reading *reading)
{
	vector_free(&reading->entries);
	reading->has_newer = false;
}

/* --- of another process ---------------------------------------------------------------------------- */

/* The address of `text` in this process. NULL: it is not in that memory, or has no end. */
static const char *find_text(const struct memory *from, size_t size, const char *text)
{
	uint64_t offset = (uintptr_t)text - from->here;

	if (offset < texts_offset(from->blocks) || offset >= size)
		return NULL;
	text = (const char *)from + offset;
	return memchr(text, 0, size - offset) ? text : NULL;
}

static bool was_counted(const struct statement_counts *counts)
{
	return counts->sums[STATEMENT_CALLS] || counts->sums[STATEMENT_PREPARES];
}

int statement_memory_read(const void *at, size_t size, struct statement_reading *reading,
                          int (*each)(void *context, const struct statement_stats *stats), void *context)
{
	const struct memory *from = at;
	const struct statement_entry *entries = (const void *)((const char *)at + FRONT_BYTES);
	uint32_t made;
	int code = 0;

	if (size < FRONT_BYTES || from->blocks > STATEMENT_BLOCKS || texts_offset(from->blocks) > size)
		return 0;
	made = from->made < from->blocks * STATEMENT_BLOCK ? from->made : from->blocks * STATEMENT_BLOCK;
	for (uint32_t i = 0; i < made; i++)
		if (!statement_reading_follow(reading, i, entries[i].counter.generation))
			return 0;
	for (uint32_t i = 0; !code && i < made; i++) {
		const struct statement_entry *entry = &entries[i];
		const char *text = find_text(from, size, entry->text);
		const char *database = find_text(from, size, entry->database);
		struct statement_counts now = entry->counter.own, since;
		struct statement_stats stats = { 0, "(other)", "", false, &since, { 0 } };

		statement_counts_add(&now, &entry->counter.shared);
		if (!statement_reading_since(reading, i, &now, &since) || !was_counted(&since))
			continue;
		if (text && database)
			stats = (struct statement_stats){ entry->hash,   text,   database,
				                          entry->is_cut, &since, entry->part };
		code = each(context, &stats);
		if (!code)
			statement_reading_keep(reading, i, &now);
	}
	return code;
}
