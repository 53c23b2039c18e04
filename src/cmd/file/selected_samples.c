/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's next sample mostly belongs to the same run, and row numbers mostly have no gaps, so these
 * guesses precede a search.
 */
#include "cmd/file/selected_samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/search.h"
#include "base/tally.h"
#include "base/vector.h"
#include "cmd/file/selected_runs.h"
#include "cmd/file/table_pages.h"

struct label_set {
	int64_t labels;
	bool matches;
};

struct opcode {
	int64_t address, node;
};
_Static_assert(sizeof(struct opcode) == 2 * sizeof(uint64_t), "they are hashed as words");

/* See the view alike_programs. */
struct alike {
	int64_t program, newest;
};

/* The opcodes of a program: a range of `opcodes`, by address. */
struct program {
	size_t first, count;
	bool is_known;
};

/* In the order of their ids. */
struct stacks {
	VECTOR(int64_t) ids;
};

/* The columns of the table, and the wanted columns that need them: 0: always read. */
#define READ_COLUMNS(COLUMN)                                                                                 \
	COLUMN(TIME, "timestamp_ns", 0)                                                                      \
	COLUMN(SERIES, "series", 0)                                                                          \
	COLUMN(QUERY, "query", 0)                                                                            \
	COLUMN(WEIGHT, "weight", 0)                                                                          \
	COLUMN(SIZE, "size", 0)                                                                              \
	COLUMN(STACK, "stack", SELECTED_STACK | SELECTED_CHECKPOINT | SELECTED_SPILL)                        \
	COLUMN(LABELS, "labels", SELECTED_LABELS)                                                            \
	COLUMN(OPCODE, "opcode", SELECTED_NODE)                                                              \
	COLUMN(WAIT, "wait", SELECTED_WAIT | SELECTED_CHECKPOINT)                                            \
	COLUMN(WAIT_NS, "wait_ns", SELECTED_WAIT_NS)                                                         \
	COLUMN(TRUNCATED, "truncated", SELECTED_TRUNCATED)                                                   \
	COLUMN(CONTEXT, "context", SELECTED_CONTEXT)                                                         \
	COLUMN(SPAN, "span", SELECTED_SPAN)                                                                  \
	COLUMN(CALL_STACK, "call_stack", SELECTED_CALL_STACK)
#define COLUMN_ENUM(name, column, needed_by) OF_##name,
#define COLUMN_ROW(name, column, needed_by) { column, needed_by },

enum column { READ_COLUMNS(COLUMN_ENUM) COLUMN_COUNT };
static const struct {
	const char *column;
	unsigned needed_by;
} read_columns[] = { READ_COLUMNS(COLUMN_ROW) };

struct selected_samples {
	sqlite3 *db;
	sqlite3_stmt *opcodes_of, *phase_of;
	bool (*take)(void *context, const struct selected_sample *sample);
	void *context;
	bool is_read, has_nodes, has_phases, has_checkpoints, has_spills;
	bool is_all;
	int64_t first_ns, last_ns;             /* of all runs */
	VECTOR(struct selected_run) runs;      /* by id */
	struct selected_run no_run;            /* of samples in no run, or in a missing one */
	VECTOR(struct selected_series) series; /* by id */
	VECTOR(struct selected_series) live;   /* the series of memory again, with the type LIVE */
	VECTOR(int64_t) live_ns;               /* the times of samples of memory that was not freed */
	struct selected_runs named_runs;       /* while the runs are read, as the next one */
	VECTOR(struct alike) alike;            /* by program */
	VECTOR(struct label_set) labels;       /* by number; empty: samples under any label are selected */
	struct stacks checkpoint_stacks, spill_stacks;
	VECTOR(char *) types;
	struct tally program_numbers; /* by id; from 1 */
	struct index program_index;   /* by opcodes, because a statement's programs mostly have the same */
	VECTOR(struct program) programs;
	VECTOR(struct opcode) opcodes;
	struct tally phases;       /* by stack; 0: not known yet */
	VECTOR(int8_t) low_phases; /* by stack, for low numbers; 0: not known yet */
};

struct selected_samples *selected_samples_create(sqlite3 *db)
{
	struct selected_samples *samples = calloc(1, sizeof(*samples));

	if (samples) {
		samples->db = db;
		samples->program_numbers = samples->phases = (struct tally){ .keys = 1, .width = 2 };
		samples->no_run =
			(struct selected_run){ .is_finished = true, .owner = -1, .stepped_ns = INT64_MIN };
	}
	return samples;
}

void selected_samples_free(struct selected_samples *samples)
{
	if (!samples)
		return;
	for (size_t i = 0; i < samples->types.count; i++)
		free(samples->types.items[i]);
	vector_free(&samples->types);
	vector_free(&samples->runs);
	vector_free(&samples->series);
	vector_free(&samples->live);
	vector_free(&samples->live_ns);
	selected_runs_free(&samples->named_runs);
	vector_free(&samples->alike);
	vector_free(&samples->labels);
	vector_free(&samples->checkpoint_stacks.ids);
	vector_free(&samples->spill_stacks.ids);
	vector_free(&samples->programs);
	vector_free(&samples->opcodes);
	index_free(&samples->program_index);
	tally_free(&samples->program_numbers);
	tally_free(&samples->phases);
	vector_free(&samples->low_phases);
	free(samples);
}

const char *selected_samples_type(const struct selected_samples *samples, uint32_t type)
{
	return samples->types.items[type];
}

#define FIND_PLACE(vector, number)                                                                           \
	search_number((vector).items, sizeof(*(vector).items), (vector).count, number)

/* --- what samples name ------------------------------------------------------------------------------ */

/* Calls `add` for each row. An SQLite result. */
static int read_rows(struct selected_samples *samples, const char *sql,
                     bool (*add)(struct selected_samples *samples, sqlite3_stmt *row))
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(samples->db, sql, -1, &row, NULL);

	while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = add(samples, row) ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static bool add_alike(struct selected_samples *samples, sqlite3_stmt *row)
{
	return vector_push(&samples->alike,
	                   (struct alike){ sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1) });
}

/* The columns of the runs that are read. */
#define RUN_COLUMNS(COLUMN)                                                                                  \
	COLUMN(ID, "id")                                                                                     \
	COLUMN(FIRST, "first_ns")                                                                            \
	COLUMN(LAST, "last_ns")                                                                              \
	COLUMN(FINISHED, "finished")                                                                         \
	COLUMN(STATEMENT, "statement")                                                                       \
	COLUMN(START, "query_start_ns")                                                                      \
	COLUMN(PREPARE, "prepare_time_ns")                                                                   \
	COLUMN(WORKERS, "worker_cpu_time_ns")                                                                \
	COLUMN(THREAD, "thread_id")                                                                          \
	COLUMN(PROGRAM, "program")                                                                           \
	COLUMN(CALL_STACK, "call_stack")
#define RUN_ENUM(name, column) RUN_##name,
#define RUN_NAME(name, column) column,
enum run_column { RUN_COLUMNS(RUN_ENUM) RUN_COLUMN_COUNT };
static const char *const run_columns[] = { RUN_COLUMNS(RUN_NAME) };

static int add_run(void *context, const int64_t *row)
{
	struct selected_samples *samples = context;
	const bool is_none = !row[RUN_ID];
	const size_t alike = FIND_PLACE(samples->alike, row[RUN_PROGRAM]);
	const struct selected_statement statement =
		selected_runs_statement(&samples->named_runs, row[RUN_STATEMENT]);
	const struct selected_run run = {
		.number = is_none ? 0 : (uint32_t)samples->runs.count + 1,
		.id = row[RUN_ID],
		.first_ns = row[RUN_FIRST],
		.last_ns = row[RUN_LAST],
		.is_logged = !is_none && (row[RUN_FINISHED] || row[RUN_STATEMENT]),
		.is_finished = is_none || row[RUN_FINISHED],
		.owner = row[RUN_WORKERS] > 0 ? row[RUN_THREAD] : -1,
		.program = row[RUN_PROGRAM],
		.alike = alike < samples->alike.count ? samples->alike.items[alike].newest : row[RUN_PROGRAM],
		.hash = statement.hash,
		.comment = statement.comment,
		.call_stack = row[RUN_CALL_STACK],
		.statement = statement.id,
		.stepped_ns =
			!is_none && row[RUN_PREPARE] > 0 ? row[RUN_START] + row[RUN_PREPARE] : INT64_MIN,
	};

	return vector_push(&samples->runs, run) ? SQLITE_OK : SQLITE_NOMEM;
}

/* The number of the type in `*number`. False: no memory. */
static bool find_type(struct selected_samples *samples, const char *type, uint32_t *number)
{
	size_t i = 0;

	while (i < samples->types.count && strcmp(samples->types.items[i], type))
		i++;
	*number = (uint32_t)i;
	return (i < samples->types.count || vector_push(&samples->types, strdup(type))) &&
	       samples->types.items[i];
}

static bool add_series(struct selected_samples *samples, sqlite3_stmt *row)
{
	const char *type = (const char *)sqlite3_column_text(row, 1);

	type = type ? type : "";
	struct selected_series series = {
		.id = sqlite3_column_int64(row, 0),
		.is_cpu = !strcmp(type, "CPU"),
		.is_wait = !strcmp(type, "OffCPU"),
		.is_memory = !strcmp(type, SELECTED_MEMORY),
		.is_free = !strcmp(type, "MemoryFree"),
		.period_ns = sqlite3_column_int64(row, 2),
		.thread = sqlite3_column_int64(row, 3),
		.thread_id = sqlite3_column_int64(row, 4),
	};
	if (series.is_memory) {
		if (!find_type(samples, SELECTED_LIVE, &series.type) || !vector_push(&samples->live, series))
			return false;
		series.live = (uint32_t)samples->live.count;
	}
	return find_type(samples, type, &series.type) && vector_push(&samples->series, series);
}

static bool add_live(struct selected_samples *samples, sqlite3_stmt *row)
{
	return vector_push(&samples->live_ns, sqlite3_column_int64(row, 0));
}

static bool add_labels(struct selected_samples *samples, sqlite3_stmt *row)
{
	return vector_push(&samples->labels,
	                   (struct label_set){ sqlite3_column_int64(row, 0), sqlite3_column_int(row, 1) });
}

static bool add_checkpoint_stack(struct selected_samples *samples, sqlite3_stmt *row)
{
	return vector_push(&samples->checkpoint_stacks.ids, sqlite3_column_int64(row, 0));
}

static bool add_spill_stack(struct selected_samples *samples, sqlite3_stmt *row)
{
	return vector_push(&samples->spill_stacks.ids, sqlite3_column_int64(row, 0));
}

static bool add_opcode(struct selected_samples *samples, sqlite3_stmt *row)
{
	return vector_push(&samples->opcodes,
	                   (struct opcode){ sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1) });
}

static bool set_limits(struct selected_samples *samples, sqlite3_stmt *row)
{
	samples->is_all = sqlite3_column_int(row, 0);
	samples->first_ns = sqlite3_column_int64(row, 1);
	samples->last_ns = sqlite3_column_int64(row, 2);
	return true;
}

static int read_named(struct selected_samples *samples)
{
	static const struct {
		const char *sql;
		bool (*add)(struct selected_samples *samples, sqlite3_stmt *row);
	} parts[] = {
		{ "SELECT program, newest FROM temp.alike_programs ORDER BY program", add_alike },
		{ "SELECT s.id, trace_type, period_ns, thread, t.thread_id FROM series AS s"
		  " LEFT JOIN threads AS t ON t.id = thread ORDER BY s.id",
		  add_series },
		{ "SELECT labels, matches FROM temp.selected_labels ORDER BY labels", add_labels },
		{ "SELECT is_all, first_ns, last_ns FROM temp.selected_limits", set_limits },
	};
	int code = SQLITE_OK;

	for (size_t i = 0; !code && !samples->is_read && i < sizeof(parts) / sizeof(parts[0]); i++)
		code = read_rows(samples, parts[i].sql, parts[i].add);
	if (!code && !samples->is_read)
		code = selected_runs_each(&samples->named_runs, samples->db, run_columns, RUN_COLUMN_COUNT,
		                          add_run, samples);
	if (!code && !samples->is_read && samples->live.count)
		code = read_rows(samples, "SELECT timestamp_ns FROM live_memory ORDER BY 1", add_live);
	samples->is_read = !code;
	selected_runs_free(&samples->named_runs);
	vector_free(&samples->alike);
	if (!code && samples->has_checkpoints && !samples->checkpoint_stacks.ids.count)
		code = read_rows(samples, "SELECT stack FROM temp.checkpoint_stacks ORDER BY stack",
		                 add_checkpoint_stack);
	if (!code && samples->has_spills && !samples->spill_stacks.ids.count)
		code = read_rows(samples, "SELECT stack FROM temp.spill_stacks ORDER BY stack",
		                 add_spill_stack);
	return code;
}

/* The number of runs with smaller ids. If ids have no gaps, the distance from `near` is the difference of the
 * ids. */
static size_t find_run(const struct selected_samples *samples, size_t near, int64_t id)
{
	const struct selected_run *runs = samples->runs.items;
	const size_t count = samples->runs.count;
	size_t low = near < count ? near : 0, step = 1;

	if (count)
		low = search_likely(count, (int64_t)((uint64_t)runs[low].id - low), id);
	size_t high = low;
	for (; low > 0 && runs[low - 1].id >= id; step *= 2)
		high = low, low = low > step ? low - step : 0;
	for (step = 1; high < count && runs[high].id < id; step *= 2)
		low = high, high = high + step < count ? high + step : count;
	return low + SEARCH_COUNT(high - low, i, runs[low + i].id < id);
}

/* Whether the sample has the wanted label. A label in the statement's comment takes precedence. */
static bool is_under_label(const struct selected_samples *samples, int64_t comment, int64_t labels)
{
	const struct label_set *sets = samples->labels.items;
	const int64_t asked[] = { comment, labels };

	for (size_t i = 0; i < 2; i++) {
		const size_t at = SEARCH_COUNT(samples->labels.count, j, sets[j].labels < asked[i]);

		if (at < samples->labels.count && sets[at].labels == asked[i])
			return sets[at].matches;
	}
	return !samples->labels.count;
}

/* Reads the opcodes of a run's program, unless an earlier run had the same program. An SQLite result. */
static int find_opcodes(struct selected_samples *samples, struct selected_run *run)
{
	const size_t row = tally_row(&samples->program_numbers, &run->alike);
	const size_t first = samples->opcodes.count;
	int code = SQLITE_OK;

	if (row == TALLY_NONE)
		return SQLITE_NOMEM;
	int64_t *number = &tally_at(&samples->program_numbers, row)[1];
	if (!*number) {
		sqlite3_bind_int64(samples->opcodes_of, 1, run->alike);
		while ((code = sqlite3_step(samples->opcodes_of)) == SQLITE_ROW)
			if (!add_opcode(samples, samples->opcodes_of))
				break;
		sqlite3_reset(samples->opcodes_of);
		const size_t count = samples->opcodes.count - first;
		const uint64_t *words = (const uint64_t *)(samples->opcodes.items + first);
		struct program *program =
			code == SQLITE_ROW ? NULL
					   : index_item(&samples->program_index, hash_words(words, 2 * count),
		                                        &samples->programs);

		if (!program)
			return SQLITE_NOMEM;
		if (program->is_known)
			samples->opcodes.count = first;
		else
			*program = (struct program){ first, count, true };
		*number = program - samples->programs.items + 1;
	}
	run->opcodes = (uint32_t)*number;
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The node of an opcode's address, or `unknown`. */
static int64_t find_node(const struct selected_samples *samples, const struct selected_run *run,
                         int64_t address, int64_t unknown)
{
	const struct program *program = &samples->programs.items[run->opcodes - 1];
	const struct opcode *opcodes = samples->opcodes.items + program->first;
	const size_t at = search_number(opcodes, sizeof(*opcodes), program->count, address);

	return at < program->count ? opcodes[at].node : unknown;
}

/* --- samples ---------------------------------------------------------------------------------------- */

/* NULL: it does not exist. */
static struct selected_series *find_series(struct selected_samples *samples, int64_t id)
{
	const size_t at = FIND_PLACE(samples->series, id);

	return at < samples->series.count ? &samples->series.items[at] : NULL;
}

/* The run of a sample at that time. NULL: not selected. */
static struct selected_run *run_of(struct selected_samples *samples, struct selected_series *series,
                                   int64_t id, int64_t time_ns)
{
	struct selected_run *runs = samples->runs.items;
	size_t at = series->near;

	if (at >= samples->runs.count || runs[at].id != id)
		at = series->near = find_run(samples, at, id);
	if (at < samples->runs.count && runs[at].id == id && time_ns >= runs[at].first_ns &&
	    time_ns <= runs[at].last_ns)
		return &runs[at];
	return samples->is_all ? &samples->no_run : NULL;
}

static int set_node(struct selected_samples *samples, struct selected_sample *sample,
                    struct selected_run *run)
{
	const int64_t unknown = sample->time_ns < run->stepped_ns ? NODE_PREPARING : NODE_UNKNOWN;
	int code = run->opcodes || !sample->opcode ? SQLITE_OK : find_opcodes(samples, run);

	if (!code)
		sample->node = sample->opcode ? find_node(samples, run, sample->opcode, unknown) : unknown;
	return code;
}

/* SQLite's activity outside of its interpreter. */
static int read_phase(struct selected_samples *samples, int64_t stack, int64_t *phase)
{
	sqlite3_bind_int64(samples->phase_of, 1, stack);
	*phase = sqlite3_step(samples->phase_of) == SQLITE_ROW ? sqlite3_column_int64(samples->phase_of, 0)
	                                                       : NODE_UNKNOWN;
	return sqlite3_reset(samples->phase_of);
}

#define LOW_STACKS 1000000

/* Looks at each stack once. Phases are small numbers, none of them 0. */
static int set_phase(struct selected_samples *samples, struct selected_sample *sample)
{
	const bool is_low = (uint64_t)sample->stack < LOW_STACKS;
	int8_t *low = NULL;
	size_t row = 0;
	int code = SQLITE_OK;

	sample->phase = sample->node;
	if (sample->node != NODE_UNKNOWN)
		return SQLITE_OK;
	if (is_low ? !(low = vector_at(&samples->low_phases, (size_t)sample->stack))
	           : (row = tally_row(&samples->phases, &sample->stack)) == TALLY_NONE)
		return SQLITE_NOMEM;
	int64_t phase = low ? *low : tally_at(&samples->phases, row)[1];
	if (!phase && !(code = read_phase(samples, sample->stack, &phase))) {
		if (low)
			*low = (int8_t)phase;
		else
			tally_at(&samples->phases, row)[1] = phase;
	}
	sample->phase = phase;
	return code;
}

/* Whether it is CPU time on one of these stacks. */
static bool is_on(const struct stacks *stacks, const struct selected_sample *sample)
{
	const int64_t *ids = stacks->ids.items;
	const size_t count = sample->series->is_cpu ? stacks->ids.count : 0,
		     at = SEARCH_COUNT(count, i, ids[i] < sample->stack);

	return at < count && ids[at] == sample->stack;
}

/* The sample of the row, unless it is not selected. */
static int read_sample(struct selected_samples *samples, const int64_t *row, struct selected_sample *read,
                       bool *is_selected)
{
	const int64_t time_ns = row[OF_TIME];
	struct selected_series *series = find_series(samples, row[OF_SERIES]);
	struct selected_run *run;

	*is_selected = false;
	if (!series || series->is_free || !(run = run_of(samples, series, row[OF_QUERY], time_ns)))
		return SQLITE_OK;
	const int64_t labels = row[OF_LABELS];
	if (samples->labels.count && !is_under_label(samples, run->comment, labels))
		return SQLITE_OK;
	*is_selected = true;
	*read = (struct selected_sample){
		.time_ns = time_ns,
		.weight = row[OF_WEIGHT],
		.size = row[OF_SIZE],
		.stack = row[OF_STACK],
		.labels = labels,
		.opcode = row[OF_OPCODE],
		.wait = row[OF_WAIT],
		.wait_ns = row[OF_WAIT_NS],
		.is_truncated = row[OF_TRUNCATED],
		.context = row[OF_CONTEXT],
		.span = row[OF_SPAN],
		.call_stack = row[OF_CALL_STACK],
		.run = run,
		.series = series,
	};
	/* Waits of checkpoints have the cause 6. */
	read->is_checkpoint = samples->has_checkpoints &&
	                      ((read->wait & 255) == 6 || is_on(&samples->checkpoint_stacks, read));
	read->is_spill = samples->has_spills && is_on(&samples->spill_stacks, read);
	const int code = samples->has_nodes ? set_node(samples, read, run) : SQLITE_OK;
	return code || !samples->has_phases ? code : set_phase(samples, read);
}

/* Memory that was not freed is taken twice: as allocated, and as live. */
static bool take_live(struct selected_samples *samples, struct selected_sample *read)
{
	const int64_t *times = samples->live_ns.items;
	const size_t count = samples->live_ns.count, at = SEARCH_COUNT(count, i, times[i] < read->time_ns);

	if (at == count || times[at] != read->time_ns)
		return true;
	read->series = &samples->live.items[read->series->live - 1];
	return samples->take(samples->context, read);
}

static int take_values(void *context, const int64_t *row)
{
	struct selected_samples *samples = context;
	struct selected_sample read;
	bool is_selected = false;
	const int code = read_sample(samples, row, &read, &is_selected);

	if (code || !is_selected)
		return code;
	return samples->take(samples->context, &read) &&
	                       (!read.series->is_memory || take_live(samples, &read))
	               ? SQLITE_OK
	               : SQLITE_ABORT;
}

/* Reads only the needed columns. */
static int read_samples(struct selected_samples *samples, unsigned columns)
{
	const char *names[COLUMN_COUNT] = { NULL };

	if (samples->labels.count)
		columns |= SELECTED_LABELS;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (!read_columns[i].needed_by || read_columns[i].needed_by & columns)
			names[i] = read_columns[i].column;
	return table_pages_each(
		samples->db,
		&(struct table_rows){ .table = "samples",
	                              .columns = names,
	                              .count = COLUMN_COUNT,
	                              .first = samples->is_all ? INT64_MIN : samples->first_ns,
	                              .last = samples->is_all ? INT64_MAX : samples->last_ns },
		take_values, samples);
}

int selected_samples_each(struct selected_samples *samples, unsigned columns,
                          bool (*take)(void *context, const struct selected_sample *sample), void *context)
{
	samples->has_nodes = columns & SELECTED_NODE;
	samples->has_phases = columns & SELECTED_PHASE;
	samples->has_checkpoints = columns & SELECTED_CHECKPOINT;
	samples->has_spills = columns & SELECTED_SPILL;
	samples->take = take;
	samples->context = context;
	int code = read_named(samples);
	if (!code && samples->has_nodes)
		code = sqlite3_prepare_v2(
			samples->db,
			"SELECT address, node FROM program_opcodes WHERE program = ? ORDER BY address", -1,
			&samples->opcodes_of, NULL);
	if (!code && samples->has_phases)
		code = sqlite3_prepare_v2(samples->db, "SELECT stackPhase(?)", -1, &samples->phase_of, NULL);
	if (!code)
		code = read_samples(samples, columns);
	/* The statements are reset, so the connection keeps its message. */
	sqlite3_finalize(samples->opcodes_of);
	sqlite3_finalize(samples->phase_of);
	samples->opcodes_of = samples->phase_of = NULL;
	return code;
}
