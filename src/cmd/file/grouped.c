/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's GROUP BY sorts, which takes a microsecond or more per row; a hash table takes a tenth of that.
 */
#include "cmd/file/grouped.h"

#include <stdlib.h>
#include <string.h>

#include "base/tally.h"
#include "base/vector.h"
#include "cmd/file/helper_thread.h"

#define COLUMNS_MAX 63
#define WORD_BITS 64
/* Rows of the source: few enough for the processor's cache, enough that the threads seldom wake each
 * other. */
#define BLOCK_ROWS (4 * TALLY_ROWS_MAX)
#define BLOCKS 4

/* The bits of a group's words that hold the value of a column. */
struct place {
	uint8_t word, shift, bits; /* 0 bits: no value */
};

/* The sums by some key columns. Keys that need few bits share words. */
struct grouping {
	uint64_t used; /* bits of columns */
	bool is_made;
	const struct grouping
		*source; /* has the groups that this one sums up; NULL: reads the table's source */
	struct tally groups;
	size_t key_count, sum_count, real_count, sums_count;
	uint8_t keys[COLUMNS_MAX]; /* columns */
	uint8_t sums[COLUMNS_MAX]; /* in the order of their words: sum_count, real_count, the others */
	struct place places[COLUMNS_MAX];
};

struct grouped {
	const struct grouped_table *table;
	void *own;
	struct helper_thread
		*adding; /* adds rows of the source to the groupings; NULL: the source is not being read */
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

static unsigned bits_of(enum grouped_kind kind)
{
	return kind == GROUPED_BIT ? 1 : kind == GROUPED_TEXT ? 32 : WORD_BITS;
}

static bool is_used(const struct grouping *grouping, size_t column)
{
	return grouping->used >> column & 1;
}

/* Keys of a whole word come first; the smaller ones are packed after them. */
static void place_keys(struct grouping *grouping, const struct grouped_table *table)
{
	unsigned word = 0, filled = 0;

	for (int is_packed = 0; is_packed < 2; is_packed++)
		for (size_t i = 0; i < table->count; i++) {
			const unsigned bits = bits_of(table->kinds[i]);

			if (!is_used(grouping, i) || table->kinds[i] > GROUPED_TEXT ||
			    is_packed != (bits < WORD_BITS))
				continue;
			if (filled + bits > WORD_BITS)
				word++, filled = 0;
			grouping->places[i] = (struct place){ (uint8_t)word, (uint8_t)filled, (uint8_t)bits };
			filled += bits;
			grouping->keys[grouping->key_count++] = (uint8_t)i;
		}
	grouping->groups.keys = word + (filled > 0);
}

static void place_sums(struct grouping *grouping, const struct grouped_table *table, enum grouped_kind kind)
{
	for (size_t i = 0; i < table->count; i++)
		if (is_used(grouping, i) && table->kinds[i] == kind) {
			const size_t word = grouping->groups.keys + grouping->sums_count;

			grouping->places[i] = (struct place){ (uint8_t)word, 0, WORD_BITS };
			grouping->sums[grouping->sums_count++] = (uint8_t)i;
		}
}

static struct grouping *make_grouping(const struct grouped_table *table, uint64_t used)
{
	struct grouping *grouping = calloc(1, sizeof(*grouping));

	if (!grouping)
		return NULL;
	grouping->used = used;
	place_keys(grouping, table);
	place_sums(grouping, table, GROUPED_SUM);
	grouping->sum_count = grouping->sums_count;
	place_sums(grouping, table, GROUPED_REAL);
	grouping->real_count = grouping->sums_count - grouping->sum_count;
	place_sums(grouping, table, GROUPED_LEAST);
	place_sums(grouping, table, GROUPED_MOST);
	grouping->groups.width = grouping->groups.keys + grouping->sums_count;
	return grouping;
}

/* The used columns whose kind is at most that one. */
static uint64_t keys_of(const struct grouped_table *table, uint64_t used, enum grouped_kind last)
{
	uint64_t keys = 0;

	for (size_t i = 0; i < table->count; i++)
		if (table->kinds[i] <= last)
			keys |= used & UINT64_C(1) << i;
	return keys;
}

/* The one with these columns, and no other key. NULL: none. */
static struct grouping *find_grouping(const struct grouped *grouped, uint64_t used)
{
	const uint64_t keys = keys_of(grouped->table, used, GROUPED_TEXT);

	for (size_t i = 0; i < grouped->all.count; i++) {
		struct grouping *one = grouped->all.items[i];

		if (!(used & ~one->used) && keys_of(grouped->table, one->used, GROUPED_TEXT) == keys)
			return one;
	}
	return NULL;
}

/* Adds one with at least these columns, but no other key. False: no memory. */
static bool add_grouping(struct grouped *grouped, uint64_t used)
{
	const uint64_t keys = keys_of(grouped->table, used, GROUPED_TEXT);
	struct grouping **place = NULL;

	if (find_grouping(grouped, used))
		return true;
	for (size_t i = 0; i < grouped->all.count && !place; i++)
		if (!grouped->all.items[i]->is_made &&
		    keys_of(grouped->table, grouped->all.items[i]->used, GROUPED_TEXT) == keys)
			place = &grouped->all.items[i];
	struct grouping *grouping = make_grouping(grouped->table, used | (place ? (*place)->used : 0));
	if (grouping && place) {
		free_grouping(*place);
		*place = grouping;
	} else if (grouping && !vector_push(&grouped->all, grouping)) {
		free_grouping(grouping);
		return false;
	}
	return grouping;
}

/* The columns that its source must have. */
static uint64_t needed_for(const struct grouped_table *table, uint64_t used)
{
	return used & table->following ? (used & ~table->following) | UINT64_C(1) << table->base : used;
}

/* If there is no memory now, the read asks for it again. */
void grouped_ask(void *data, void *memory, uint64_t used)
{
	struct grouped *grouped = memory;

	grouped->table = data;
	add_grouping(grouped, used);
}

/* --- adding ------------------------------------------------------------------------------------------- */

/* Converts a value to a word of which the largest counts, and back. 0, the initial value of a group, is less
 * than all others. */
static int64_t swap_order(int64_t value, enum grouped_kind kind)
{
	const uint64_t order = (uint64_t)value ^ (uint64_t)INT64_MIN;

	return (int64_t)(kind == GROUPED_LEAST ? ~order : order);
}

/* The value of a column in a group, as in rows. */
static int64_t value_of(const struct grouping *grouping, const enum grouped_kind *kinds, const int64_t *words,
                        size_t column)
{
	const struct place place = grouping->places[column];
	const int64_t word = words[place.word];

	if (kinds[column] == GROUPED_LEAST || kinds[column] == GROUPED_MOST)
		return swap_order(word, kinds[column]);
	return place.bits == WORD_BITS
	               ? word
	               : (int64_t)((uint64_t)word >> place.shift & ((UINT64_C(1) << place.bits) - 1));
}

static void add_words(const struct grouping *grouping, const enum grouped_kind *kinds, const int64_t *row,
                      int64_t *words)
{
	const size_t reals = grouping->sum_count + grouping->real_count;
	size_t i = 0;

	words += grouping->groups.keys;
	for (; i < grouping->sum_count; i++)
		words[i] += row[grouping->sums[i]];
	for (; i < reals; i++)
		tally_add(&words[i], tally_number(row[grouping->sums[i]]));
	for (; i < grouping->sums_count; i++) {
		const uint8_t column = grouping->sums[i];
		const int64_t order = swap_order(row[column], kinds[column]);

		if ((uint64_t)order > (uint64_t)words[i])
			words[i] = order;
	}
}

/* Adds at most TALLY_ROWS_MAX rows. False: no memory. */
static bool add_rows(struct grouping *grouping, const struct grouped_table *table, const int64_t *first,
                     size_t count)
{
	const size_t width = grouping->groups.keys;
	int64_t keys[COLUMNS_MAX * TALLY_ROWS_MAX];
	uint32_t rows[TALLY_ROWS_MAX];

	memset(keys, 0, count * width * sizeof(keys[0]));
	for (size_t key = 0; key < grouping->key_count; key++) {
		const int64_t *words = &first[grouping->keys[key]];
		const struct place place = grouping->places[grouping->keys[key]];

		for (size_t i = 0; i < count; i++, words += table->count)
			keys[i * width + place.word] |=
				(int64_t)((uint64_t)(place.bits == 1 ? *words != 0 : *words) << place.shift);
	}
	if (!tally_rows(&grouping->groups, keys, count, rows))
		return false;
	for (size_t i = 0; i < count; i++)
		add_words(grouping, table->kinds, &first[i * table->count],
		          tally_at(&grouping->groups, rows[i]));
	return true;
}

/* To all that read the source. False: no memory. */
static bool add_to_all(void *context, const void *first, size_t count)
{
	const struct grouped *grouped = context;
	const int64_t *rows = first;

	for (size_t i = 0; i < grouped->all.count; i++) {
		struct grouping *one = grouped->all.items[i];

		for (size_t at = 0; !one->is_made && !one->source && at < count; at += TALLY_ROWS_MAX)
			if (!add_rows(one, grouped->table, &rows[at * grouped->table->count],
			              count - at < TALLY_ROWS_MAX ? count - at : TALLY_ROWS_MAX))
				return false;
	}
	return true;
}

int64_t *grouped_add(struct grouped *grouped)
{
	return helper_thread_add(grouped->adding);
}

/* Whether a grouping with these columns, but none that follow, is made. */
static bool is_made(const struct grouped *grouped, uint64_t needed)
{
	for (size_t i = 0; i < grouped->all.count; i++) {
		const struct grouping *one = grouped->all.items[i];

		if (one->is_made && !(needed & ~one->used) && !(one->used & grouped->table->following))
			return true;
	}
	return false;
}

/* Groupings whose keys differ only in columns of few values are derived from one grouping with all of these
 * keys. False: no memory. */
static bool add_common(struct grouped *grouped)
{
	for (size_t i = 0; i < grouped->all.count; i++) {
		const uint64_t needed = needed_for(grouped->table, grouped->all.items[i]->used);
		const uint64_t many = keys_of(grouped->table, needed, GROUPED_KEY);
		uint64_t used = 0;

		if (grouped->all.items[i]->is_made || is_made(grouped, needed))
			continue;
		for (size_t j = 0; j < grouped->all.count; j++) {
			const struct grouping *one = grouped->all.items[j];
			const uint64_t of_one = needed_for(grouped->table, one->used);

			if (!one->is_made && keys_of(grouped->table, of_one, GROUPED_KEY) == many)
				used |= of_one;
		}
		if (!add_grouping(grouped, used))
			return false;
	}
	return true;
}

/* The one with the fewest columns from which this one can be made. NULL: none. */
static const struct grouping *find_source(const struct grouped *grouped, const struct grouping *grouping)
{
	const uint64_t needed = needed_for(grouped->table, grouping->used);
	const struct grouping *best = NULL;

	for (size_t i = 0; i < grouped->all.count; i++) {
		const struct grouping *one = grouped->all.items[i];

		if (one->used != grouping->used && !(needed & ~one->used) &&
		    !(one->used & grouped->table->following) &&
		    (!best || __builtin_popcountll(one->used) < __builtin_popcountll(best->used)))
			best = one;
	}
	return best;
}

/* The value of a column in a group of a source. */
static int64_t value_in(const struct grouped *grouped, const struct grouping *source, const int64_t *words,
                        size_t column)
{
	const struct grouped_table *table = grouped->table;

	return is_used(source, column) ? value_of(source, table->kinds, words, column)
	                               : table->follow(grouped->own, column,
	                                               value_of(source, table->kinds, words, table->base));
}

/* Sums up its source, which is made. False: no memory. */
static bool sum_up(const struct grouped *grouped, struct grouping *grouping)
{
	const struct grouped_table *table = grouped->table;
	const struct grouping *source = grouping->source;
	int64_t *rows = malloc(TALLY_ROWS_MAX * table->count * sizeof(*rows));
	bool fine = rows;

	for (size_t i = 0, count = 0; fine && i < source->groups.count; i++) {
		int64_t *row = &rows[count++ * table->count];
		const int64_t *words = tally_at(&source->groups, i);

		for (size_t key = 0; key < grouping->key_count; key++)
			row[grouping->keys[key]] = value_in(grouped, source, words, grouping->keys[key]);
		for (size_t sum = 0; sum < grouping->sums_count; sum++)
			row[grouping->sums[sum]] = value_in(grouped, source, words, grouping->sums[sum]);
		if (count < TALLY_ROWS_MAX && i + 1 < source->groups.count)
			continue;
		fine = add_rows(grouping, table, rows, count);
		count = 0;
	}
	free(rows);
	return fine;
}

/* Fills the groupings that are derived from others. A source has more columns than a grouping made of it, so
 * there is no cycle. An SQLite result. */
static int sum_up_all(sqlite3 *db, struct grouped *grouped)
{
	bool is_complete, is_following = false;

	do {
		is_complete = true;
		for (size_t i = 0; i < grouped->all.count; i++) {
			struct grouping *one = grouped->all.items[i];

			if (one->is_made || !one->source)
				continue;
			is_complete = false;
			if (!one->source->is_made)
				continue;
			if (one->used & grouped->table->following && !is_following) {
				const int code = grouped->table->begin_following(db, grouped->own);

				if (code)
					return code;
				is_following = true;
			}
			if (!sum_up(grouped, one))
				return SQLITE_NOMEM;
			one->is_made = true;
		}
	} while (!is_complete);
	return SQLITE_OK;
}

/* Reads the source, if any grouping needs it. An SQLite result. */
static int make_of_source(sqlite3 *db, struct grouped *grouped)
{
	uint64_t used = 0;
	bool is_needed = false;

	for (size_t i = 0; i < grouped->all.count; i++) {
		struct grouping *one = grouped->all.items[i];

		if (one->is_made || (one->source = find_source(grouped, one)))
			continue;
		is_needed = true;
		used |= one->used;
	}
	if (!is_needed)
		return SQLITE_OK;
	grouped->adding = helper_thread_start(grouped->table->count * sizeof(int64_t), BLOCK_ROWS, BLOCKS,
	                                      add_to_all, grouped);
	int code = grouped->adding ? grouped->table->read(db, grouped->own, grouped, used) : SQLITE_NOMEM;
	if (!code && !helper_thread_wait(grouped->adding))
		code = SQLITE_NOMEM;
	helper_thread_end(grouped->adding);
	grouped->adding = NULL;
	for (size_t i = 0; !code && i < grouped->all.count; i++)
		grouped->all.items[i]->is_made |= !grouped->all.items[i]->source;
	return code;
}

/* Makes all requested groupings that are missing, in one pass over the source. An SQLite result. */
static int make_all(sqlite3 *db, struct grouped *grouped)
{
	int code = SQLITE_NOMEM;

	if (!grouped->own)
		grouped->own = calloc(1, grouped->table->own_size);
	if (grouped->own && add_common(grouped)) {
		code = make_of_source(db, grouped);
		if (!code)
			code = sum_up_all(db, grouped);
	}
	for (size_t i = 0; i < grouped->all.count; i++)
		if (!grouped->all.items[i]->is_made)
			tally_free(&grouped->all.items[i]->groups);
	return code;
}

/* --- a scan ------------------------------------------------------------------------------------------- */

int grouped_make(sqlite3 *db, void *data, void *memory, void *rows, uint64_t used, char **error)
{
	struct grouped *grouped = memory;

	grouped_ask(data, memory, used);
	const struct grouping *grouping = find_grouping(grouped, used);
	int code = !grouping ? SQLITE_NOMEM : grouping->is_made ? SQLITE_OK : make_all(db, grouped);
	if (code == SQLITE_ERROR)
		*error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
	/* A grouping with more columns may have replaced one that was not made. */
	if (!code)
		*(const struct grouping **)rows = find_grouping(grouped, used);
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
	const enum grouped_kind kind = grouped->table->kinds[column];

	if (!grouping->places[column].bits)
		return; /* the statement does not read it */
	const int64_t value =
		value_of(grouping, grouped->table->kinds, tally_at(&grouping->groups, row), (size_t)column);
	switch (kind) {
	case GROUPED_TEXT:
		sqlite3_result_text(result, grouped->table->text(grouped->own, value), -1, SQLITE_STATIC);
		break;
	case GROUPED_REAL: sqlite3_result_double(result, tally_number(value)); break;
	default: sqlite3_result_int64(result, value);
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
