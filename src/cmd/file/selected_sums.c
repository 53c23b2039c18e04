/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's GROUP BY sorts, which takes a microsecond a sample and more; a table of hashes takes a tenth.
 */
#include "cmd/file/selected_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/tally.h"
#include "base/vector.h"
#include "cmd/file/selected_samples.h"
#include "store/file/made_table.h"

/* See selected.sql. */
enum column {
	/* keys */
	SERIES,
	TRACE_TYPE,
	THREAD,
	RUN,
	LOGGED,
	HASH,
	PROGRAM,
	FINISHED,
	IS_WORKER,
	COMMENT,
	LABELS,
	STACK_ID,
	NODE,
	PHASE,
	WAIT,
	CHECKPOINT,
	KEYS,
	/* sums */
	SAMPLES = KEYS,
	VALUE,
	SQUARE,
	SPREAD,
	LONGEST,
	STRETCHES,
	CHANGES,
	COLUMNS
};

static const char columns[] =
	"series INTEGER, trace_type TEXT, thread INTEGER, run INTEGER, logged INTEGER, "
	"hash INTEGER, program INTEGER, "
	"finished INTEGER, is_worker INTEGER, comment INTEGER, "
	"labels INTEGER, stack_id INTEGER, "
	"node INTEGER, phase INTEGER, wait INTEGER, checkpoint INTEGER, samples INTEGER, "
	"value INTEGER, square REAL, spread REAL, "
	"longest INTEGER, stretches INTEGER, changes INTEGER";

/* --- groups ----------------------------------------------------------------------------------------- */

/* The sums by some key columns, for statements that read no other columns than these. */
struct grouping {
	uint64_t used; /* bits of columns */
	bool is_made;
	struct tally groups;
	enum column keys[KEYS]; /* of the groups, in the order of their words */
	int place[COLUMNS];     /* the word of a group that has it; -1: none */
	/* For STRETCHES and CHANGES: type, run and thread, then the series of the newest sample. */
	struct tally stretches;
};

struct groupings {
	struct selected_samples *samples;
	VECTOR(struct grouping *) all;
};

static void free_grouping(struct grouping *grouping)
{
	tally_free(&grouping->groups);
	tally_free(&grouping->stretches);
	free(grouping);
}

static void free_groupings(void *given)
{
	struct groupings *groupings = given;

	for (size_t i = 0; i < groupings->all.count; i++)
		free_grouping(groupings->all.items[i]);
	vector_free(&groupings->all);
	selected_samples_free(groupings->samples);
}

static bool uses(uint64_t used, enum column column)
{
	return used >> column & 1;
}

static struct grouping *make_grouping(uint64_t used)
{
	struct grouping *grouping = calloc(1, sizeof(*grouping));
	int words = 0;

	if (!grouping)
		return NULL;
	*grouping = (struct grouping){ .used = used, .stretches = { .keys = 3, .width = 4 } };
	for (int i = 0; i < COLUMNS; i++) {
		if (i == KEYS)
			grouping->groups.keys = (size_t)words;
		else if (i < KEYS && uses(used, i))
			grouping->keys[words] = i;
		grouping->place[i] = uses(used, i) ? words++ : -1;
	}
	grouping->groups.width = (size_t)words;
	return grouping;
}

/* The one that has these columns, with the fewest others. NULL: none. */
static struct grouping *find_grouping(const struct groupings *groupings, uint64_t used)
{
	struct grouping *best = NULL;

	for (size_t i = 0; i < groupings->all.count; i++) {
		struct grouping *one = groupings->all.items[i];

		if (!(used & ~one->used) &&
		    (!best || __builtin_popcountll(one->used) < __builtin_popcountll(best->used)))
			best = one;
	}
	return best;
}

/* Without memory for it now it is asked for again when it is read. */
static void ask(void *given, uint64_t used)
{
	struct groupings *groupings = given;
	struct grouping *grouping = find_grouping(groupings, used) ? NULL : make_grouping(used);

	if (grouping && !vector_push(&groupings->all, grouping))
		free_grouping(grouping);
}

/* Some samples, with the keys and the value of each. */
struct block {
	struct groupings *groupings;
	struct selected_sample samples[TALLY_ROWS_MAX];
	int64_t keys[TALLY_ROWS_MAX][KEYS];
	int64_t values[TALLY_ROWS_MAX];
	size_t count;
};

static void set_keys(struct block *block)
{
	for (size_t i = 0; i < block->count; i++) {
		const struct selected_sample *sample = &block->samples[i];
		const struct selected_run *run = sample->run;
		const struct selected_series *series = sample->series;
		int64_t *keys = block->keys[i];

		block->values[i] = sample->size + sample->weight * series->period_ns;
		keys[SERIES] = series->id;
		keys[TRACE_TYPE] = series->type;
		keys[THREAD] = series->thread;
		keys[RUN] = run->id;
		keys[LOGGED] = run->is_logged;
		keys[HASH] = run->hash;
		keys[PROGRAM] = run->program;
		keys[FINISHED] = run->is_finished;
		keys[IS_WORKER] = run->owner != -1 && run->owner != series->thread_id;
		keys[COMMENT] = run->comment;
		keys[STACK_ID] = sample->stack;
		keys[NODE] = sample->node;
		keys[PHASE] = sample->phase;
		keys[LABELS] = sample->labels;
		keys[WAIT] = sample->wait;
		keys[CHECKPOINT] = sample->is_checkpoint;
	}
}

/* False: no memory. */
static bool add_stretches(struct grouping *grouping, const struct block *block, const uint32_t *rows)
{
	int64_t keys[3 * TALLY_ROWS_MAX];
	uint32_t stretches[TALLY_ROWS_MAX];

	for (size_t i = 0; i < block->count; i++) {
		keys[3 * i] = block->keys[i][TRACE_TYPE];
		keys[3 * i + 1] = block->keys[i][RUN];
		keys[3 * i + 2] = block->keys[i][THREAD];
	}
	if (!tally_rows(&grouping->stretches, keys, block->count, stretches))
		return false;
	for (size_t i = 0; i < block->count; i++) {
		int64_t *words = tally_at(&grouping->groups, rows[i]);
		int64_t *newest =
			tally_at(&grouping->stretches, stretches[i]) + 3; /* the series, + 1; 0: a new row */
		const int64_t series = block->keys[i][SERIES] + 1;

		if (grouping->place[STRETCHES] >= 0)
			words[grouping->place[STRETCHES]] += !*newest;
		if (grouping->place[CHANGES] >= 0)
			words[grouping->place[CHANGES]] += *newest && *newest != series;
		*newest = series;
	}
	return true;
}

/* False: no memory. */
static bool add_block(struct grouping *grouping, const struct block *block)
{
	const int *place = grouping->place;
	const size_t count = grouping->groups.keys;
	int64_t keys[KEYS * TALLY_ROWS_MAX];
	uint32_t rows[TALLY_ROWS_MAX];

	for (size_t i = 0; i < block->count; i++)
		for (size_t key = 0; key < count; key++)
			keys[i * count + key] = block->keys[i][grouping->keys[key]];
	if (!tally_rows(&grouping->groups, keys, block->count, rows))
		return false;
	for (size_t i = 0; i < block->count; i++) {
		const struct selected_series *series = block->samples[i].series;
		const int64_t value = block->values[i], wait_ns = block->samples[i].wait_ns;
		int64_t *words = tally_at(&grouping->groups, rows[i]);

		if (place[SAMPLES] >= 0)
			words[place[SAMPLES]]++;
		if (place[VALUE] >= 0)
			words[place[VALUE]] += value;
		if (place[SQUARE] >= 0)
			tally_add(&words[place[SQUARE]], (double)value * (double)value);
		if (place[SPREAD] >= 0)
			tally_add(&words[place[SPREAD]],
			          (double)value * (double)(series->is_wait ? series->period_ns : value));
		if (place[LONGEST] >= 0 && wait_ns > words[place[LONGEST]])
			words[place[LONGEST]] = wait_ns;
	}
	return (place[STRETCHES] < 0 && place[CHANGES] < 0) || add_stretches(grouping, block, rows);
}

/* To all that are not made yet. False: no memory. */
static bool add_to_all(struct block *block)
{
	const struct groupings *groupings = block->groupings;

	set_keys(block);
	for (size_t i = 0; i < groupings->all.count; i++)
		if (!groupings->all.items[i]->is_made && !add_block(groupings->all.items[i], block))
			return false;
	block->count = 0;
	return true;
}

static bool add_sample(void *context, const struct selected_sample *sample)
{
	struct block *block = context;

	block->samples[block->count++] = *sample;
	return block->count < TALLY_ROWS_MAX || add_to_all(block);
}

/* The columns of the samples that these need. */
static unsigned needed_columns(uint64_t used)
{
	return (uses(used, STACK_ID) || uses(used, PHASE) ? SELECTED_STACK : 0) |
	       (uses(used, LABELS) ? SELECTED_LABELS : 0) |
	       (uses(used, NODE) || uses(used, PHASE) ? SELECTED_NODE : 0) |
	       (uses(used, PHASE) ? SELECTED_PHASE : 0) | (uses(used, WAIT) ? SELECTED_WAIT : 0) |
	       (uses(used, LONGEST) ? SELECTED_WAIT_NS : 0) |
	       (uses(used, CHECKPOINT) ? SELECTED_CHECKPOINT : 0);
}

/* Makes all groupings that were asked for and are not made, in one pass over the samples. An SQLite result.
 */
static int make_all(sqlite3 *db, struct groupings *groupings, char **error)
{
	struct block *block = malloc(sizeof(*block));
	uint64_t used = 0;
	int code = SQLITE_NOMEM;

	for (size_t i = 0; i < groupings->all.count; i++)
		if (!groupings->all.items[i]->is_made)
			used |= groupings->all.items[i]->used;
	if (!groupings->samples)
		groupings->samples = selected_samples_create(db);
	if (block && groupings->samples) {
		block->groupings = groupings;
		block->count = 0;
		code = selected_samples_each(groupings->samples, needed_columns(used), add_sample, block);
		if (code == SQLITE_ABORT || (!code && !add_to_all(block)))
			code = SQLITE_NOMEM;
	}
	if (code == SQLITE_ERROR)
		*error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
	free(block);
	for (size_t i = 0; i < groupings->all.count; i++) {
		struct grouping *one = groupings->all.items[i];

		tally_free(&one->stretches);
		if (code && !one->is_made)
			tally_free(&one->groups);
		else
			one->is_made = true;
	}
	return code;
}

/* --- a scan ------------------------------------------------------------------------------------------- */

struct rows {
	const struct grouping *grouping;
};

static int make_rows(sqlite3 *db, void *data, void *given, void *made, uint64_t used, char **error)
{
	struct groupings *groupings = given;

	(void)data;
	ask(groupings, used);
	struct grouping *grouping = find_grouping(groupings, used);
	int code = !grouping ? SQLITE_NOMEM : grouping->is_made ? SQLITE_OK : make_all(db, groupings, error);
	if (!code)
		((struct rows *)made)->grouping = grouping;
	return code;
}

static size_t count_rows(const void *made)
{
	return ((const struct rows *)made)->grouping->groups.count;
}

static void free_rows(void *made)
{
	(void)made; /* the table keeps them */
}

static void read_value(const void *given, const void *made, size_t row, int column, sqlite3_context *result)
{
	const struct groupings *groupings = given;
	const struct grouping *grouping = ((const struct rows *)made)->grouping;
	const int place = grouping->place[column];
	const int64_t *word = tally_at(&grouping->groups, row) + (place < 0 ? 0 : place);

	switch (place < 0 ? COLUMNS : (enum column)column) {
	case COLUMNS: break; /* the statement does not read it */
	case TRACE_TYPE:
		sqlite3_result_text(result, selected_samples_type(groupings->samples, (uint32_t)*word), -1,
		                    SQLITE_STATIC);
		break;
	case SQUARE:
	case SPREAD: sqlite3_result_double(result, tally_number(*word)); break;
	default: sqlite3_result_int64(result, *word);
	}
}

int selected_sums_replace(sqlite3 *db)
{
	static const struct made_table made = {
		.name = "selected_sums",
		.needs_create = true,
		.columns = columns,
		.memory_size = sizeof(struct groupings),
		.rows_size = sizeof(struct rows),
		.ask = ask,
		.make = make_rows,
		.count = count_rows,
		.read = read_value,
		.free_rows = free_rows,
		.free_memory = free_groupings,
	};

	int code = made_table_add(db, &made, NULL);

	return code ? code
	            : sqlite3_exec(db,
	                           "DROP VIEW temp.selected_sums;"
	                           " CREATE VIRTUAL TABLE temp.selected_sums USING selected_sums",
	                           NULL, NULL, NULL);
}
