/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's GROUP BY sorts, which takes a microsecond a sample and more; a table of hashes takes a tenth. The
 * runs that are selected are read once, into memory; those of a sample mostly follow those of the one before
 * it.
 */
#include "cmd/file/selected_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/tally.h"
#include "base/search.h"
#include "base/vector.h"
#include "cmd/file/made_table.h"

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
	PREPARING,
	LABELS,
	STACK_ID,
	OUTSIDE_STACK_ID, /* -1: none */
	OPCODE,
	WAIT,
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

static const char columns[] = "series INTEGER, trace_type TEXT, thread INTEGER, run INTEGER, logged INTEGER, "
			      "hash INTEGER, program INTEGER, "
			      "finished INTEGER, is_worker INTEGER, comment INTEGER, preparing INTEGER, "
			      "labels INTEGER, stack_id INTEGER, "
			      "outside_stack_id INTEGER, opcode INTEGER, wait INTEGER, samples INTEGER, "
			      "value INTEGER, square REAL, spread REAL, "
			      "longest INTEGER, stretches INTEGER, changes INTEGER";

/* --- what samples name ------------------------------------------------------------------------------ */

struct run {
	int64_t id, first_ns, last_ns, hash, program;
	int64_t owner;      /* the thread_id of a run that had workers, else -1 */
	int64_t stepped_ns; /* when its preparation had ended; INT64_MIN: it has none */
	int32_t comment;
	bool is_logged, is_finished;
};

struct series {
	int64_t id, thread, thread_id, period_ns;
	uint32_t type; /* its place in `types` */
	bool is_wait;
};

struct label_set {
	int64_t labels;
	bool matches;
};

struct memory {
	bool is_read, is_all;
	int64_t first_ns, last_ns;       /* of all runs */
	VECTOR(struct run) runs;         /* by id */
	VECTOR(struct series) series;    /* by id */
	VECTOR(struct label_set) labels; /* by number; empty: samples under any label count */
	VECTOR(char *) types;
};

static void free_memory(void *given)
{
	struct memory *memory = given;

	for (size_t i = 0; i < memory->types.count; i++)
		free(memory->types.items[i]);
	vector_free(&memory->types);
	vector_free(&memory->runs);
	vector_free(&memory->series);
	vector_free(&memory->labels);
}

/* Calls `add` for each row. An SQLite result. */
static int read_rows(sqlite3 *db, struct memory *memory, const char *sql,
                     bool (*add)(struct memory *memory, sqlite3_stmt *row))
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);

	while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = add(memory, row) ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static bool add_run(struct memory *memory, sqlite3_stmt *row)
{
	const struct run run = {
		.id = sqlite3_column_int64(row, 0),
		.first_ns = sqlite3_column_int64(row, 1),
		.last_ns = sqlite3_column_int64(row, 2),
		.is_logged = sqlite3_column_int(row, 3),
		.is_finished = sqlite3_column_int(row, 4),
		.owner = sqlite3_column_int64(row, 5),
		.program = sqlite3_column_int64(row, 6),
		.hash = sqlite3_column_int64(row, 7),
		.comment = sqlite3_column_int(row, 8),
		.stepped_ns =
			sqlite3_column_type(row, 9) == SQLITE_NULL ? INT64_MIN : sqlite3_column_int64(row, 9),
	};

	return vector_push(&memory->runs, run);
}

static bool add_series(struct memory *memory, sqlite3_stmt *row)
{
	const char *type = (const char *)sqlite3_column_text(row, 1);
	size_t i = 0;

	type = type ? type : "";
	while (i < memory->types.count && strcmp(memory->types.items[i], type))
		i++;
	if (i == memory->types.count && !vector_push(&memory->types, strdup(type)))
		return false;
	return memory->types.items[i] &&
	       vector_push(&memory->series, (struct series){
						    .id = sqlite3_column_int64(row, 0),
						    .type = (uint32_t)i,
						    .is_wait = !strcmp(type, "OffCPU"),
						    .period_ns = sqlite3_column_int64(row, 2),
						    .thread = sqlite3_column_int64(row, 3),
						    .thread_id = sqlite3_column_int64(row, 4),
					    });
}

static bool add_labels(struct memory *memory, sqlite3_stmt *row)
{
	return vector_push(&memory->labels,
	                   (struct label_set){ sqlite3_column_int64(row, 0), sqlite3_column_int(row, 1) });
}

static bool set_limits(struct memory *memory, sqlite3_stmt *row)
{
	memory->is_all = sqlite3_column_int(row, 0);
	memory->first_ns = sqlite3_column_int64(row, 1);
	memory->last_ns = sqlite3_column_int64(row, 2);
	return true;
}

static int read_memory(sqlite3 *db, struct memory *memory)
{
	static const char runs[] =
		"SELECT s.id, s.first_ns, s.last_ns, s.id AND (q.finished OR q.statement), q.finished OR NOT "
		"s.id,"
		" iif(q.worker_cpu_time_ns > 0, q.thread_id, -1), q.program, x.normalized_query_hash, "
		"x.labels,"
		" iif(s.id AND q.prepare_time_ns > 0, q.query_start_ns + q.prepare_time_ns, NULL)"
		" FROM temp.selected AS s LEFT JOIN queries AS q ON q.id = s.id"
		" LEFT JOIN statements AS x ON x.id = q.statement ORDER BY s.id";
	static const char series[] =
		"SELECT s.id, trace_type, period_ns, thread, t.thread_id FROM series AS s"
		" LEFT JOIN threads AS t ON t.id = thread ORDER BY s.id";
	static const char limits[] = "SELECT max(id = 0), min(first_ns), max(last_ns) FROM temp.selected";
	int code = memory->is_read ? SQLITE_OK : read_rows(db, memory, runs, add_run);

	if (code || memory->is_read)
		return code;
	code = read_rows(db, memory, series, add_series);
	if (!code)
		code = read_rows(db, memory,
		                 "SELECT labels, matches FROM temp.selected_labels ORDER BY labels",
		                 add_labels);
	if (!code)
		code = read_rows(db, memory, limits, set_limits);
	memory->is_read = !code;
	return code;
}

/* How many runs come before that number. `near` is where the last one was: runs of one time have numbers
 * close to each other. */
static size_t find_run(const struct memory *memory, size_t near, int64_t id)
{
	const struct run *runs = memory->runs.items;
	const size_t count = memory->runs.count;
	size_t low = near, high = near, step = 1;

	for (; low > 0 && runs[low - 1].id >= id; step *= 2)
		high = low, low = low > step ? low - step : 0;
	for (step = 1; high < count && runs[high].id < id; step *= 2)
		low = high, high = high + step < count ? high + step : count;
	return low + SEARCH_COUNT(high - low, i, runs[low + i].id < id);
}

/* --- a scan ------------------------------------------------------------------------------------------- */

struct rows {
	uint64_t used;
	struct tally groups;
	int place[COLUMNS]; /* the word of a row that has it; -1: none */
	/* For STRETCHES and CHANGES: type, run and thread, then the series of the newest sample. */
	struct tally stretches;
	/* For OUTSIDE_STACK_ID: program and address of an opcode, then 1 if it is known, -1 if it is not. */
	struct tally opcodes;
	sqlite3_stmt *opcode;
};

static void free_rows(void *given)
{
	struct rows *rows = given;

	tally_free(&rows->groups);
	tally_free(&rows->stretches);
	tally_free(&rows->opcodes);
}

static size_t count_rows(const void *given)
{
	return ((const struct rows *)given)->groups.count;
}

static bool uses(const struct rows *rows, enum column column)
{
	return rows->used >> column & 1;
}

static void place_columns(struct rows *rows)
{
	int words = 0;

	for (int i = 0; i < COLUMNS; i++) {
		if (i == KEYS)
			rows->groups.keys = (size_t)words;
		rows->place[i] = uses(rows, i) ? words++ : -1;
	}
	rows->groups.width = (size_t)words;
	rows->stretches.keys = 3;
	rows->stretches.width = 4;
	rows->opcodes.keys = 2;
	rows->opcodes.width = 3;
}

/* The columns of the samples that the statement does not need are not read. */
static int prepare_samples(sqlite3 *db, const struct memory *memory, const struct rows *rows,
                           sqlite3_stmt **made)
{
	char *sql = sqlite3_mprintf("SELECT timestamp_ns, series, query, weight, size, %s, %s, %s, %s, %s "
	                            "FROM samples WHERE timestamp_ns BETWEEN ? AND ?",
	                            uses(rows, STACK_ID) || uses(rows, OUTSIDE_STACK_ID) ? "stack" : "0",
	                            uses(rows, LABELS) || memory->labels.count ? "labels" : "0",
	                            uses(rows, OPCODE) || uses(rows, OUTSIDE_STACK_ID) ? "opcode" : "0",
	                            uses(rows, WAIT) ? "wait" : "0", uses(rows, LONGEST) ? "wait_ns" : "0");
	int code = sql ? sqlite3_prepare_v2(db, sql, -1, made, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	if (code)
		return code;
	sqlite3_bind_int64(*made, 1, memory->first_ns);
	sqlite3_bind_int64(*made, 2, memory->last_ns);
	return SQLITE_OK;
}

/* Whether the sample has the label that is asked for. A label in the statement's comment comes first. */
static bool is_under_label(const struct memory *memory, int64_t comment, int64_t labels)
{
	const struct label_set *sets = memory->labels.items;
	const int64_t asked[] = { comment, labels };

	for (size_t i = 0; i < 2; i++) {
		const size_t at = SEARCH_COUNT(memory->labels.count, j, sets[j].labels < asked[i]);

		if (at < memory->labels.count && sets[at].labels == asked[i])
			return sets[at].matches;
	}
	return !memory->labels.count;
}

/* False: no memory. */
static bool add_stretch(struct rows *rows, int64_t *words, const struct run *run, const struct series *series)
{
	const int64_t key[] = { series->type, run->id, series->thread };
	const size_t before = rows->stretches.count, at = tally_row(&rows->stretches, key);

	if (at == TALLY_NONE)
		return false;
	int64_t *newest = tally_at(&rows->stretches, at) + 3;
	if (rows->place[STRETCHES] >= 0)
		words[rows->place[STRETCHES]] += at == before;
	if (rows->place[CHANGES] >= 0)
		words[rows->place[CHANGES]] += at != before && *newest != series->id;
	*newest = series->id;
	return true;
}

/* -1: the sample is in a known opcode. */
static int64_t find_outside(struct rows *rows, sqlite3_stmt *sample, int64_t program)
{
	const int64_t key[] = { program, sqlite3_column_int64(sample, 7) };
	const size_t row = rows->opcode && key[1] ? tally_row(&rows->opcodes, key) : TALLY_NONE;

	if (row == TALLY_NONE)
		return sqlite3_column_int64(sample, 5);
	int64_t *is_known = tally_at(&rows->opcodes, row) + 2;
	if (!*is_known) {
		sqlite3_bind_int64(rows->opcode, 1, key[0]);
		sqlite3_bind_int64(rows->opcode, 2, key[1]);
		*is_known = sqlite3_step(rows->opcode) == SQLITE_ROW ? 1 : -1;
		sqlite3_reset(rows->opcode);
	}
	return *is_known > 0 ? -1 : sqlite3_column_int64(sample, 5);
}

/* False: no memory. */
static bool add_sample(struct rows *rows, sqlite3_stmt *sample, const struct run *run,
                       const struct series *series)
{
	const int64_t values[KEYS] = {
		[SERIES] = series->id,
		[TRACE_TYPE] = series->type,
		[THREAD] = series->thread,
		[RUN] = run->id,
		[LOGGED] = run->is_logged,
		[HASH] = run->hash,
		[PROGRAM] = run->program,
		[FINISHED] = run->is_finished,
		[IS_WORKER] = run->owner != -1 && run->owner != series->thread_id,
		[COMMENT] = run->comment,
		[PREPARING] = sqlite3_column_int64(sample, 0) < run->stepped_ns,
		[STACK_ID] = sqlite3_column_int64(sample, 5),
		[OUTSIDE_STACK_ID] = find_outside(rows, sample, run->program),
		[LABELS] = sqlite3_column_int64(sample, 6),
		[OPCODE] = sqlite3_column_int64(sample, 7),
		[WAIT] = sqlite3_column_int64(sample, 8),
	};
	const int64_t value =
		sqlite3_column_int64(sample, 4) + sqlite3_column_int64(sample, 3) * series->period_ns;
	int64_t key[KEYS];

	for (int i = 0; i < KEYS; i++)
		if (rows->place[i] >= 0)
			key[rows->place[i]] = values[i];
	const size_t row = tally_row(&rows->groups, key);
	if (row == TALLY_NONE)
		return false;
	int64_t *words = tally_at(&rows->groups, row);
	const int *place = rows->place;
	if (place[SAMPLES] >= 0)
		words[place[SAMPLES]]++;
	if (place[VALUE] >= 0)
		words[place[VALUE]] += value;
	if (place[SQUARE] >= 0)
		tally_add(&words[place[SQUARE]], (double)value * (double)value);
	if (place[SPREAD] >= 0)
		tally_add(&words[place[SPREAD]],
		          (double)value * (double)(series->is_wait ? series->period_ns : value));
	if (place[LONGEST] >= 0 && sqlite3_column_int64(sample, 9) > words[place[LONGEST]])
		words[place[LONGEST]] = sqlite3_column_int64(sample, 9);
	return (place[STRETCHES] < 0 && place[CHANGES] < 0) || add_stretch(rows, words, run, series);
}

static int make_rows(sqlite3 *db, void *data, void *given, void *made, uint64_t used, char **error)
{
	static const struct run no_run = { .is_finished = true, .owner = -1, .stepped_ns = INT64_MIN };
	struct memory *memory = given;
	struct rows *rows = made;
	sqlite3_stmt *sample = NULL;
	size_t near = 0;
	int code = read_memory(db, memory);

	(void)data, (void)error;
	*rows = (struct rows){ .used = used };
	place_columns(rows);
	if (!code && uses(rows, OUTSIDE_STACK_ID))
		code = sqlite3_prepare_v2(db,
		                          "SELECT 1 FROM program_opcodes WHERE program = ? AND address = ?",
		                          -1, &rows->opcode, NULL);
	if (!code)
		code = prepare_samples(db, memory, rows, &sample);
	while (!code && (code = sqlite3_step(sample)) == SQLITE_ROW) {
		const int64_t time = sqlite3_column_int64(sample, 0),
			      number = sqlite3_column_int64(sample, 1);
		const size_t at = SEARCH_COUNT(memory->series.count, i, memory->series.items[i].id < number);
		const struct run *run = &no_run;

		code = SQLITE_OK;
		if (at == memory->series.count || memory->series.items[at].id != number)
			continue;
		near = find_run(memory, near, sqlite3_column_int64(sample, 2));
		if (near < memory->runs.count &&
		    memory->runs.items[near].id == sqlite3_column_int64(sample, 2) &&
		    time >= memory->runs.items[near].first_ns && time <= memory->runs.items[near].last_ns)
			run = &memory->runs.items[near];
		else if (!memory->is_all)
			continue;
		if (memory->labels.count &&
		    !is_under_label(memory, run->comment, sqlite3_column_int64(sample, 6)))
			continue;
		if (!add_sample(rows, sample, run, &memory->series.items[at]))
			code = SQLITE_NOMEM;
	}
	sqlite3_finalize(sample);
	sqlite3_finalize(rows->opcode);
	rows->opcode = NULL;
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void read_value(const void *given, const void *made, size_t row, int column, sqlite3_context *result)
{
	const struct memory *memory = given;
	const struct rows *rows = made;
	const int place = rows->place[column];
	const int64_t *word = tally_at(&rows->groups, row) + (place < 0 ? 0 : place);

	switch (place < 0 ? COLUMNS : (enum column)column) {
	case COLUMNS: break; /* the statement does not read it */
	case TRACE_TYPE: sqlite3_result_text(result, memory->types.items[*word], -1, SQLITE_STATIC); break;
	case OUTSIDE_STACK_ID:
		if (*word != -1)
			sqlite3_result_int64(result, *word);
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
		.columns = columns,
		.memory_size = sizeof(struct memory),
		.rows_size = sizeof(struct rows),
		.make = make_rows,
		.count = count_rows,
		.read = read_value,
		.free_rows = free_rows,
		.free_memory = free_memory,
	};

	int code = made_table_add(db, &made, NULL);

	return code ? code
	            : sqlite3_exec(db,
	                           "DROP VIEW temp.selected_sums;"
	                           " CREATE VIRTUAL TABLE temp.selected_sums USING selected_sums",
	                           NULL, NULL, NULL);
}
