/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's GROUP BY sorts, which takes a microsecond a row and more; a table of hashes takes a tenth.
 */
#include "cmd/file/grouped.h"

#include <stdlib.h>
#include <string.h>

#include "base/tally.h"
#include "base/vector.h"

#define COLUMNS_MAX 63
#define NO_PLACE 255

/* The sums by some key columns, for statements that read no other columns than these. */
struct grouping {
	uint64_t used; /* bits of columns */
	bool is_made;
	struct tally groups;
	size_t column_count;
	uint8_t columns[COLUMNS_MAX]; /* of the words of a group */
	uint8_t place[COLUMNS_MAX];   /* the word of a group that has the column; NO_PLACE: none */
};

/* Rows that were not added to the groupings yet. */
struct block {
	size_t count;
	int64_t words[]; /* of TALLY_ROWS_MAX rows */
};

struct grouped {
	const struct grouped_table *table;
	void *own;
	struct block *block; /* NULL: the source is not being read */
	VECTOR(struct grouping *) all;
};
_Static_assert(sizeof(struct grouped) <= GROUPED_SIZE, "GROUPED_SIZE");

static void free_grouping(struct grouping *grouping)
{
	tally_free(&grouping->groups);
	free(grouping);
}

void grouped_free(void *memory)
{
	struct grouped *grouped = memory;

	for (size_t i = 0; i < grouped->all.count; i++)
		free_grouping(grouped->all.items[i]);
	vector_free(&grouped->all);
	if (grouped->own)
		grouped->table->free_own(grouped->own);
	free(grouped->own);
}

static struct grouping *make_grouping(const struct grouped_table *table, uint64_t used)
{
	struct grouping *grouping = calloc(1, sizeof(*grouping));
	size_t words = 0;

	if (!grouping)
		return NULL;
	grouping->used = used;
	for (size_t i = 0; i < table->count; i++) {
		const bool is_used = used >> i & 1;

		grouping->place[i] = is_used ? (uint8_t)words : NO_PLACE;
		if (!is_used)
			continue;
		grouping->columns[words++] = (uint8_t)i;
		if (table->kinds[i] <= GROUPED_TEXT)
			grouping->groups.keys = words;
	}
	grouping->column_count = grouping->groups.width = words;
	return grouping;
}

/* The one that has these columns, with the fewest others. NULL: none. */
static struct grouping *find_grouping(const struct grouped *grouped, uint64_t used)
{
	struct grouping *best = NULL;

	for (size_t i = 0; i < grouped->all.count; i++) {
		struct grouping *one = grouped->all.items[i];

		if (!(used & ~one->used) &&
		    (!best || __builtin_popcountll(one->used) < __builtin_popcountll(best->used)))
			best = one;
	}
	return best;
}

/* The keys that make many rows. */
static uint64_t many_of(const struct grouped_table *table, uint64_t used)
{
	uint64_t many = 0;

	for (size_t i = 0; i < table->count; i++)
		if (table->kinds[i] == GROUPED_KEY)
			many |= used & UINT64_C(1) << i;
	return many;
}

/* Without memory for it now it is asked for again when it is read. */
void grouped_ask(void *data, void *memory, uint64_t used)
{
	struct grouped *grouped = memory;
	struct grouping **place = NULL;

	grouped->table = data;
	if (find_grouping(grouped, used))
		return;
	for (size_t i = 0; i < grouped->all.count && !place; i++) {
		struct grouping *one = grouped->all.items[i];

		if (!one->is_made && many_of(grouped->table, one->used) == many_of(grouped->table, used))
			place = &grouped->all.items[i];
	}
	struct grouping *grouping = make_grouping(grouped->table, used | (place ? (*place)->used : 0));
	if (grouping && place) {
		free_grouping(*place);
		*place = grouping;
	} else if (grouping && !vector_push(&grouped->all, grouping)) {
		free_grouping(grouping);
	}
}

/* --- adding ------------------------------------------------------------------------------------------- */

/* Turns a value into a word of which the largest counts, and back. 0, which a group begins with, is less than
 * all others. */
static int64_t swap_order(int64_t value, enum grouped_kind kind)
{
	const uint64_t order = (uint64_t)value ^ (uint64_t)INT64_MIN;

	return (int64_t)(kind == GROUPED_LEAST ? ~order : order);
}

static void add_words(const struct grouping *grouping, const enum grouped_kind *kinds, const int64_t *row,
                      int64_t *words)
{
	for (size_t i = grouping->groups.keys; i < grouping->column_count; i++) {
		const uint8_t column = grouping->columns[i];
		const enum grouped_kind kind = kinds[column];

		if (kind == GROUPED_SUM) {
			words[i] += row[column];
		} else if (kind == GROUPED_REAL) {
			tally_add(&words[i], tally_number(row[column]));
		} else {
			const int64_t order = swap_order(row[column], kind);

			if ((uint64_t)order > (uint64_t)words[i])
				words[i] = order;
		}
	}
}

/* False: no memory. */
static bool add_block(struct grouping *grouping, const struct grouped_table *table, const struct block *block)
{
	const size_t count = grouping->groups.keys;
	int64_t keys[COLUMNS_MAX * TALLY_ROWS_MAX];
	uint32_t rows[TALLY_ROWS_MAX];

	for (size_t i = 0; i < block->count; i++)
		for (size_t key = 0; key < count; key++)
			keys[i * count + key] = block->words[i * table->count + grouping->columns[key]];
	if (!tally_rows(&grouping->groups, keys, block->count, rows))
		return false;
	for (size_t i = 0; i < block->count; i++)
		add_words(grouping, table->kinds, &block->words[i * table->count],
		          tally_at(&grouping->groups, rows[i]));
	return true;
}

/* To all that are not made yet. False: no memory. */
static bool flush(struct grouped *grouped)
{
	for (size_t i = 0; i < grouped->all.count; i++)
		if (!grouped->all.items[i]->is_made &&
		    !add_block(grouped->all.items[i], grouped->table, grouped->block))
			return false;
	grouped->block->count = 0;
	return true;
}

int64_t *grouped_add(struct grouped *grouped)
{
	struct block *block = grouped->block;

	if (block->count == TALLY_ROWS_MAX && !flush(grouped))
		return NULL;
	return &block->words[block->count++ * grouped->table->count];
}

/* Makes all groupings that were asked for and are not made, in one pass over the source. An SQLite result. */
static int make_all(sqlite3 *db, struct grouped *grouped)
{
	uint64_t used = 0;
	int code = SQLITE_NOMEM;

	for (size_t i = 0; i < grouped->all.count; i++)
		if (!grouped->all.items[i]->is_made)
			used |= grouped->all.items[i]->used;
	if (!grouped->own)
		grouped->own = calloc(1, grouped->table->own_size);
	grouped->block = malloc(sizeof(*grouped->block) +
	                        TALLY_ROWS_MAX * grouped->table->count * sizeof(grouped->block->words[0]));
	if (grouped->own && grouped->block) {
		grouped->block->count = 0;
		code = grouped->table->read(db, grouped->own, grouped, used);
		if (!code && !flush(grouped))
			code = SQLITE_NOMEM;
	}
	free(grouped->block);
	grouped->block = NULL;
	for (size_t i = 0; i < grouped->all.count; i++) {
		struct grouping *one = grouped->all.items[i];

		if (code && !one->is_made)
			tally_free(&one->groups);
		else
			one->is_made = true;
	}
	return code;
}

/* --- a scan ------------------------------------------------------------------------------------------- */

int grouped_make(sqlite3 *db, void *data, void *memory, void *rows, uint64_t used, char **error)
{
	struct grouped *grouped = memory;

	grouped_ask(data, memory, used);
	struct grouping *grouping = find_grouping(grouped, used);
	int code = !grouping ? SQLITE_NOMEM : grouping->is_made ? SQLITE_OK : make_all(db, grouped);
	if (code == SQLITE_ERROR)
		*error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
	if (!code)
		*(struct grouping **)rows = grouping;
	return code;
}

size_t grouped_count(const void *rows)
{
	return (*(struct grouping *const *)rows)->groups.count;
}

void grouped_read(const void *memory, const void *rows, size_t row, int column, sqlite3_context *result)
{
	const struct grouped *grouped = memory;
	const struct grouping *grouping = *(struct grouping *const *)rows;
	const uint8_t place = grouping->place[column];
	const enum grouped_kind kind = grouped->table->kinds[column];

	if (place == NO_PLACE)
		return; /* the statement does not read it */
	const int64_t word = tally_at(&grouping->groups, row)[place];
	switch (kind) {
	case GROUPED_TEXT:
		sqlite3_result_text(result, grouped->table->text(grouped->own, word), -1, SQLITE_STATIC);
		break;
	case GROUPED_REAL: sqlite3_result_double(result, tally_number(word)); break;
	case GROUPED_LEAST:
	case GROUPED_MOST: sqlite3_result_int64(result, swap_order(word, kind)); break;
	default: sqlite3_result_int64(result, word);
	}
}

int grouped_replace(sqlite3 *db, const struct made_table *made, const struct grouped_table *table)
{
	int code = made_table_add(db, made, (void *)(uintptr_t)table);
	char *sql = code ? NULL
	                 : sqlite3_mprintf("DROP VIEW IF EXISTS temp.\"%w\"; CREATE VIRTUAL TABLE "
	                                   "temp.\"%w\" USING \"%w\"",
	                                   made->name, made->name, made->name);

	if (!code)
		code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return code;
}
