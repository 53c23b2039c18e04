/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/selected_sums.h"

#include <string.h>

#include "base/search.h"
#include "base/tally.h"
#include "base/vector.h"
#include "cmd/file/grouped.h"
#include "cmd/file/selected_samples.h"
#include "wire/wait.h"

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
	OWN_PROGRAM,
	FINISHED,
	IS_WORKER,
	COMMENT,
	LABELS,
	STACK_ID,
	SHAPE,
	OPCODE,
	NODE,
	PHASE,
	WAIT,
	QUEUED,
	CHECKPOINT,
	SPILL,
	CALL_STACK,
	KEYS,
	/* sums */
	SAMPLES = KEYS,
	VALUE,
	SQUARE,
	SPREAD,
	LONGEST,
	LAST_STACK,
	STRETCHES,
	CHANGES,
	COLUMNS
};

static const char columns[] =
	"series INTEGER, trace_type TEXT, thread INTEGER, run INTEGER, logged INTEGER, "
	"hash INTEGER, program INTEGER, own_program INTEGER, "
	"finished INTEGER, is_worker INTEGER, comment INTEGER, "
	"labels INTEGER, stack_id INTEGER, shape INTEGER, opcode INTEGER, "
	"node INTEGER, phase INTEGER, wait INTEGER, queued INTEGER, checkpoint INTEGER, "
	"spill INTEGER, call_stack INTEGER, samples INTEGER, "
	"value INTEGER, square REAL, spread REAL, "
	"longest INTEGER, last_stack INTEGER, stretches INTEGER, changes INTEGER";

static const enum grouped_kind kinds[COLUMNS] = {
	[TRACE_TYPE] = GROUPED_TEXT, [LOGGED] = GROUPED_BIT,   [FINISHED] = GROUPED_BIT,
	[IS_WORKER] = GROUPED_BIT,   [WAIT] = GROUPED_FEW,     [QUEUED] = GROUPED_BIT,
	[CHECKPOINT] = GROUPED_BIT,  [SPILL] = GROUPED_BIT, /* other columns before SAMPLES: GROUPED_KEY */
	[SAMPLES] = GROUPED_SUM,     [VALUE] = GROUPED_SUM,    [SQUARE] = GROUPED_REAL,
	[SPREAD] = GROUPED_REAL,     [LONGEST] = GROUPED_MOST, [LAST_STACK] = GROUPED_MOST,
	[STRETCHES] = GROUPED_SUM,   [CHANGES] = GROUPED_SUM,
};

/* Mostly, a run has one thread and two types. */
#define STRETCHES_OF_RUN 2

struct stretches_of_run {
	const struct selected_series *newest[STRETCHES_OF_RUN]; /* NULL: no more */
};

struct stack_shape {
	int64_t stack, shape;
};

struct source {
	struct selected_samples *samples;
	VECTOR(struct stack_shape) shapes; /* by stack */
	/* For STRETCHES and CHANGES: the series of the newest sample of each type, run and thread. */
	VECTOR(struct stretches_of_run) of_runs; /* by number */
	struct tally others;                     /* by type, run and thread: the series' id, + 1 */
	/* While samples are read. */
	struct grouped *grouped;
	bool has_stretches;
};

/* A stretch that has no slot in its run. False: no memory. */
static bool set_other_stretch(struct source *source, const struct selected_sample *sample, int64_t *row)
{
	const struct selected_series *series = sample->series;
	const size_t other = tally_row(&source->others,
	                               (const int64_t[]){ series->type, sample->run->id, series->thread });

	if (other == TALLY_NONE)
		return false;
	int64_t *newest = &tally_at(&source->others, other)[3];
	row[STRETCHES] = !*newest;
	row[CHANGES] = *newest && *newest != series->id + 1;
	*newest = series->id + 1;
	return true;
}

/* False: no memory. */
static bool set_stretch(struct source *source, const struct selected_sample *sample, int64_t *row)
{
	const struct selected_series *series = sample->series;
	struct stretches_of_run *of_run = vector_at(&source->of_runs, sample->run->number);

	if (!of_run)
		return false;
	for (size_t i = 0; i < STRETCHES_OF_RUN; i++) {
		const struct selected_series *newest = of_run->newest[i];

		if (newest && (newest->type != series->type || newest->thread != series->thread))
			continue;
		row[STRETCHES] = !newest;
		row[CHANGES] = newest && newest != series;
		of_run->newest[i] = series;
		return true;
	}
	return set_other_stretch(source, sample, row);
}

static int64_t bits_of(double number)
{
	int64_t word;

	memcpy(&word, &number, sizeof(word));
	return word;
}

/* The part of the value that is due to chance. Of a wait it is only the last period. The block of a sample of
 * memory is known. */
static double spread_of(const struct selected_sample *sample, int64_t value)
{
	const double blocks = sample->weight > 1 ? (double)sample->weight : 1;

	return sample->series->is_wait     ? (double)sample->series->period_ns
	       : sample->series->is_memory ? (double)value - (double)value / blocks
	                                   : (double)value;
}

static bool add_sample(void *context, const struct selected_sample *sample)
{
	struct source *source = context;
	const struct selected_run *run = sample->run;
	const struct selected_series *series = sample->series;
	const int64_t value = sample->size + sample->weight * series->period_ns;
	int64_t *row = grouped_add(source->grouped);

	if (!row)
		return false;
	row[SERIES] = series->id;
	row[TRACE_TYPE] = series->type;
	row[THREAD] = series->thread;
	row[RUN] = run->id;
	row[LOGGED] = run->is_logged;
	row[HASH] = run->hash;
	row[PROGRAM] = run->alike;
	row[OWN_PROGRAM] = run->program;
	row[FINISHED] = run->is_finished;
	row[IS_WORKER] = run->owner != -1 && run->owner != series->thread_id;
	row[COMMENT] = run->comment;
	row[STACK_ID] = sample->stack;
	row[OPCODE] = sample->opcode;
	row[NODE] = sample->node;
	row[PHASE] = sample->phase;
	row[LABELS] = sample->labels;
	row[WAIT] = sample->wait;
	row[QUEUED] = (sample->wait & 255) == WAIT_RUN_QUEUE;
	row[CHECKPOINT] = sample->is_checkpoint;
	row[SPILL] = sample->is_spill;
	row[CALL_STACK] = sample->call_stack;
	row[SAMPLES] = 1;
	row[VALUE] = value;
	row[SQUARE] = bits_of((double)value * (double)value);
	row[SPREAD] = bits_of((double)value * spread_of(sample, value));
	row[LONGEST] = sample->wait_ns;
	return !source->has_stretches || set_stretch(source, sample, row);
}

static bool uses(uint64_t used, enum column column)
{
	return used >> column & 1;
}

/* The columns of samples that the used columns need. */
static unsigned needed_columns(uint64_t used)
{
	return (uses(used, STACK_ID) || uses(used, PHASE) ? SELECTED_STACK : 0) |
	       (uses(used, LABELS) ? SELECTED_LABELS : 0) |
	       (uses(used, OPCODE) || uses(used, NODE) || uses(used, PHASE) ? SELECTED_NODE : 0) |
	       (uses(used, PHASE) ? SELECTED_PHASE : 0) |
	       (uses(used, WAIT) || uses(used, QUEUED) ? SELECTED_WAIT : 0) |
	       (uses(used, LONGEST) ? SELECTED_WAIT_NS : 0) |
	       (uses(used, CALL_STACK) ? SELECTED_CALL_STACK : 0) |
	       (uses(used, CHECKPOINT) ? SELECTED_CHECKPOINT : 0) | (uses(used, SPILL) ? SELECTED_SPILL : 0);
}

static int read_samples(sqlite3 *db, void *own, struct grouped *grouped, uint64_t used)
{
	struct source *source = own;

	if (!source->samples)
		source->samples = selected_samples_create(db);
	if (!source->samples)
		return SQLITE_NOMEM;
	source->others = (struct tally){ .keys = 3, .width = 4 };
	source->grouped = grouped;
	source->has_stretches = uses(used, STRETCHES) || uses(used, CHANGES);
	const int code = selected_samples_each(source->samples, needed_columns(used), add_sample, source);
	tally_free(&source->others);
	vector_free(&source->of_runs);
	return code == SQLITE_ABORT ? SQLITE_NOMEM : code;
}

static const char *text_of(const void *own, int64_t word)
{
	const struct source *source = own;

	return selected_samples_type(source->samples, (uint32_t)word);
}

static int read_shapes(sqlite3 *db, void *own)
{
	struct source *source = own;
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(
		db, "SELECT stack_id, shape FROM temp.report_shapes WHERE shape ORDER BY stack_id", -1, &row,
		NULL);

	source->shapes.count = 0;
	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = vector_push(&source->shapes, (struct stack_shape){ sqlite3_column_int64(row, 0),
		                                                          sqlite3_column_int64(row, 1) })
		               ? SQLITE_OK
		               : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int64_t follow_stack(const void *own, size_t column, int64_t stack)
{
	const struct source *source = own;
	const struct stack_shape *shapes = source->shapes.items;
	const size_t count = column == SHAPE ? source->shapes.count : 0,
		     at = search_number(shapes, sizeof(*shapes), count, stack);

	return column == LAST_STACK ? stack : at < count ? shapes[at].shape : 0;
}

static void free_source(void *own)
{
	struct source *source = own;

	selected_samples_free(source->samples);
	vector_free(&source->shapes);
}

int selected_sums_replace(sqlite3 *db)
{
	static const struct made_table made = { .name = "selected_sums",
		                                .columns = columns,
		                                GROUPED_METHODS };
	static const struct grouped_table table = {
		.kinds = kinds,
		.count = COLUMNS,
		.own_size = sizeof(struct source),
		.read = read_samples,
		.text = text_of,
		.free_own = free_source,
		.following = UINT64_C(1) << SHAPE | UINT64_C(1) << LAST_STACK,
		.base = STACK_ID,
		.begin_following = read_shapes,
		.follow = follow_stack,
	};

	return grouped_replace(db, &made, &table);
}
