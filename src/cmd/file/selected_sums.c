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
	OUTSIDE_STACK_ID, /* -1: none */
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

/* Those of samples outside of the known opcodes; see read/plan_nodes.sql. */
enum { NODE_UNKNOWN = -1, NODE_PREPARING = -2 };

static const char columns[] = "series INTEGER, trace_type TEXT, thread INTEGER, run INTEGER, logged INTEGER, "
			      "hash INTEGER, program INTEGER, "
			      "finished INTEGER, is_worker INTEGER, comment INTEGER, "
			      "labels INTEGER, stack_id INTEGER, "
			      "node INTEGER, outside_stack_id INTEGER, wait INTEGER, samples INTEGER, "
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

static void free_memory(struct memory *memory)
{
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
	struct memory memory;
	VECTOR(struct grouping *) all;
};

/* What finds the node of a sample's opcode. */
struct nodes {
	struct tally known; /* by program and address: 1 if it is known, -1 if it is not, and the node */
	sqlite3_stmt *look_up;
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
	free_memory(&groupings->memory);
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

/* The columns of the samples that are not needed are not read. */
static int prepare_samples(sqlite3 *db, const struct memory *memory, uint64_t used, sqlite3_stmt **made)
{
	char *sql = sqlite3_mprintf("SELECT timestamp_ns, series, query, weight, size, %s, %s, %s, %s, %s "
	                            "FROM samples WHERE timestamp_ns BETWEEN ? AND ?",
	                            uses(used, STACK_ID) || uses(used, OUTSIDE_STACK_ID) ? "stack" : "0",
	                            uses(used, LABELS) || memory->labels.count ? "labels" : "0",
	                            uses(used, NODE) || uses(used, OUTSIDE_STACK_ID) ? "opcode" : "0",
	                            uses(used, WAIT) ? "wait" : "0", uses(used, LONGEST) ? "wait_ns" : "0");
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
static bool add_stretch(struct grouping *grouping, int64_t *words, const struct run *run,
                        const struct series *series)
{
	const int64_t key[] = { series->type, run->id, series->thread };
	const size_t before = grouping->stretches.count, at = tally_row(&grouping->stretches, key);

	if (at == TALLY_NONE)
		return false;
	int64_t *newest = tally_at(&grouping->stretches, at) + 3;
	if (grouping->place[STRETCHES] >= 0)
		words[grouping->place[STRETCHES]] += at == before;
	if (grouping->place[CHANGES] >= 0)
		words[grouping->place[CHANGES]] += at != before && *newest != series->id;
	*newest = series->id;
	return true;
}

/* The node of an opcode's address, or `unknown`. */
static int64_t find_node(struct nodes *nodes, int64_t program, int64_t address, int64_t unknown)
{
	const int64_t key[] = { program, address };
	const size_t row = nodes->look_up && address ? tally_row(&nodes->known, key) : TALLY_NONE;

	if (row == TALLY_NONE)
		return unknown;
	int64_t *words = tally_at(&nodes->known, row);
	if (!words[2]) {
		sqlite3_bind_int64(nodes->look_up, 1, program);
		sqlite3_bind_int64(nodes->look_up, 2, address);
		words[2] = sqlite3_step(nodes->look_up) == SQLITE_ROW ? 1 : -1;
		words[3] = words[2] > 0 ? sqlite3_column_int64(nodes->look_up, 0) : 0;
		sqlite3_reset(nodes->look_up);
	}
	return words[2] > 0 ? words[3] : unknown;
}

/* `keys`: its key columns. False: no memory. */
static bool add_sample(struct grouping *grouping, const int64_t *keys, int64_t value, int64_t wait_ns,
                       const struct run *run, const struct series *series)
{
	const int *place = grouping->place;
	int64_t key[KEYS];

	for (size_t i = 0; i < grouping->groups.keys; i++)
		key[i] = keys[grouping->keys[i]];
	const size_t row = tally_row(&grouping->groups, key);
	if (row == TALLY_NONE)
		return false;
	int64_t *words = tally_at(&grouping->groups, row);
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
	return (place[STRETCHES] < 0 && place[CHANGES] < 0) || add_stretch(grouping, words, run, series);
}

/* To all that are not made yet. An SQLite result. */
static int add_to_all(struct groupings *groupings, struct nodes *nodes, sqlite3_stmt *sample,
                      const struct run *run, const struct series *series)
{
	const bool preparing = sqlite3_column_int64(sample, 0) < run->stepped_ns;
	const int64_t stack = sqlite3_column_int64(sample, 5),
		      node = find_node(nodes, run->program, sqlite3_column_int64(sample, 7),
	                               preparing ? NODE_PREPARING : NODE_UNKNOWN),
		      value = sqlite3_column_int64(sample, 4) +
	                      sqlite3_column_int64(sample, 3) * series->period_ns;
	const int64_t keys[KEYS] = {
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
		[STACK_ID] = stack,
		[NODE] = node,
		[OUTSIDE_STACK_ID] = node == NODE_UNKNOWN ? stack : -1,
		[LABELS] = sqlite3_column_int64(sample, 6),
		[WAIT] = sqlite3_column_int64(sample, 8),
	};

	for (size_t i = 0; i < groupings->all.count; i++)
		if (!groupings->all.items[i]->is_made &&
		    !add_sample(groupings->all.items[i], keys, value, sqlite3_column_int64(sample, 9), run,
		                series))
			return SQLITE_NOMEM;
	return SQLITE_OK;
}

/* The pass over the samples. An SQLite result. */
static int read_samples(struct groupings *groupings, struct nodes *nodes, sqlite3_stmt *sample)
{
	static const struct run no_run = { .is_finished = true, .owner = -1, .stepped_ns = INT64_MIN };
	const struct memory *memory = &groupings->memory;
	size_t near = 0;
	int code = SQLITE_OK;

	while (!code && (code = sqlite3_step(sample)) == SQLITE_ROW) {
		const int64_t time = sqlite3_column_int64(sample, 0),
			      number = sqlite3_column_int64(sample, 1), id = sqlite3_column_int64(sample, 2);
		const size_t at = SEARCH_COUNT(memory->series.count, i, memory->series.items[i].id < number);
		const struct run *run = &no_run;

		code = SQLITE_OK;
		if (at == memory->series.count || memory->series.items[at].id != number)
			continue;
		near = find_run(memory, near, id);
		const struct run *found = near < memory->runs.count ? &memory->runs.items[near] : &no_run;
		if (found->id == id && found != &no_run && time >= found->first_ns && time <= found->last_ns)
			run = found;
		else if (!memory->is_all)
			continue;
		if (!memory->labels.count ||
		    is_under_label(memory, run->comment, sqlite3_column_int64(sample, 6)))
			code = add_to_all(groupings, nodes, sample, run, &memory->series.items[at]);
	}
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Makes all groupings that were asked for and are not made. An SQLite result. */
static int make_all(sqlite3 *db, struct groupings *groupings)
{
	struct nodes nodes = { .known = { .keys = 2, .width = 4 } };
	sqlite3_stmt *sample = NULL;
	uint64_t used = 0;
	int code = read_memory(db, &groupings->memory);

	for (size_t i = 0; i < groupings->all.count; i++)
		if (!groupings->all.items[i]->is_made)
			used |= groupings->all.items[i]->used;
	if (!code && (uses(used, NODE) || uses(used, OUTSIDE_STACK_ID)))
		code = sqlite3_prepare_v2(
			db, "SELECT node FROM program_opcodes WHERE program = ? AND address = ?", -1,
			&nodes.look_up, NULL);
	if (!code)
		code = prepare_samples(db, &groupings->memory, used, &sample);
	if (!code)
		code = read_samples(groupings, &nodes, sample);
	sqlite3_finalize(sample);
	sqlite3_finalize(nodes.look_up);
	tally_free(&nodes.known);
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

	(void)data, (void)error;
	ask(groupings, used);
	struct grouping *grouping = find_grouping(groupings, used);
	int code = !grouping ? SQLITE_NOMEM : grouping->is_made ? SQLITE_OK : make_all(db, groupings);
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
		sqlite3_result_text(result, groupings->memory.types.items[*word], -1, SQLITE_STATIC);
		break;
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
