/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/summed_runs.h"

#include <string.h>

#include "base/interner.h"
#include "cmd/file/grouped.h"
#include "cmd/file/selected_runs.h"
#include "cmd/file/table_pages.h"

/* The columns of run_values, how they are summed up, the column with their value or its root, and the column
 * of queries with that value; NULL: computed. */
#define COLUMNS(COLUMN)                                                                                      \
	COLUMN(statement, INTEGER, GROUPED_KEY, statement, "statement")                                      \
	COLUMN(hash, INTEGER, GROUPED_KEY, hash, NULL)                                                       \
	COLUMN(program, INTEGER, GROUPED_KEY, program, "program")                                            \
	COLUMN(call_stack, INTEGER, GROUPED_KEY, call_stack, "call_stack")                                   \
	COLUMN(finished, INTEGER, GROUPED_BIT, finished, "finished")                                         \
	COLUMN(nested, INTEGER, GROUPED_BIT, nested, NULL)                                                   \
	COLUMN(sampled, INTEGER, GROUPED_BIT, sampled, NULL)                                                 \
	COLUMN(process, INTEGER, GROUPED_KEY, process, "process")                                            \
	COLUMN(library, INTEGER, GROUPED_KEY, library, "library")                                            \
	COLUMN(exception_code, INTEGER, GROUPED_KEY, exception_code, "exception_code")                       \
	COLUMN(exception, TEXT, GROUPED_TEXT, exception, NULL)                                               \
	COLUMN(runs, INTEGER, GROUPED_SUM, runs, NULL)                                                       \
	COLUMN(run, INTEGER, GROUPED_LEAST, run, NULL)                                                       \
	COLUMN(samples, INTEGER, GROUPED_SUM, samples, NULL)                                                 \
	COLUMN(first, INTEGER, GROUPED_LEAST, first, "query_start_ns")                                       \
	COLUMN(newest, INTEGER, GROUPED_MOST, first, NULL)                                                   \
	COLUMN(last, INTEGER, GROUPED_MOST, last, NULL)                                                      \
	COLUMN(ns, INTEGER, GROUPED_SUM, ns, NULL)                                                           \
	COLUMN(longest, INTEGER, GROUPED_MOST, ns, NULL)                                                     \
	COLUMN(cpu, INTEGER, GROUPED_SUM, cpu, "cpu_time_ns")                                                \
	COLUMN(outside, INTEGER, GROUPED_SUM, outside, NULL)                                                 \
	COLUMN(ns_square, REAL, GROUPED_REAL, ns, NULL)                                                      \
	COLUMN(cpu_square, REAL, GROUPED_REAL, cpu, NULL)                                                    \
	COLUMN(workers, INTEGER, GROUPED_SUM, workers, "worker_cpu_time_ns")                                 \
	COLUMN(rows, INTEGER, GROUPED_SUM, rows, "result_rows")                                              \
	COLUMN(vm_steps, INTEGER, GROUPED_SUM, vm_steps, "vm_steps")                                         \
	COLUMN(fullscan_steps, INTEGER, GROUPED_SUM, fullscan_steps, "fullscan_steps")                       \
	COLUMN(most_scanned, INTEGER, GROUPED_MOST, fullscan_steps, NULL)                                    \
	COLUMN(sorts, INTEGER, GROUPED_SUM, sorts, "sorts")                                                  \
	COLUMN(autoindexes, INTEGER, GROUPED_SUM, autoindexes, "autoindexes")                                \
	COLUMN(prepare, INTEGER, GROUPED_SUM, prepare, "prepare_time_ns")                                    \
	COLUMN(locks, INTEGER, GROUPED_SUM, locks, "lock_wait_ns")                                           \
	COLUMN(read_ns, INTEGER, GROUPED_SUM, read_ns, "io_read_ns")                                         \
	COLUMN(write_ns, INTEGER, GROUPED_SUM, write_ns, "io_write_ns")                                      \
	COLUMN(sync_ns, INTEGER, GROUPED_SUM, sync_ns, "io_sync_ns")                                         \
	COLUMN(mutexes, INTEGER, GROUPED_SUM, mutexes, "mutex_wait_ns")                                      \
	COLUMN(sleeps, INTEGER, GROUPED_SUM, sleeps, "sleep_ns")                                             \
	COLUMN(others, INTEGER, GROUPED_SUM, others, "other_wait_ns")                                        \
	COLUMN(queue, INTEGER, GROUPED_SUM, queue, "run_delay_ns")                                           \
	COLUMN(rest, INTEGER, GROUPED_SUM, rest, "rest_ns")                                                  \
	COLUMN(dropped, INTEGER, GROUPED_SUM, dropped, "samples_dropped")                                    \
	COLUMN(reads, INTEGER, GROUPED_SUM, reads, "reads")                                                  \
	COLUMN(read_bytes, INTEGER, GROUPED_SUM, read_bytes, "read_bytes")                                   \
	COLUMN(writes, INTEGER, GROUPED_SUM, writes, "writes")                                               \
	COLUMN(write_bytes, INTEGER, GROUPED_SUM, write_bytes, "write_bytes")                                \
	COLUMN(syncs, INTEGER, GROUPED_SUM, syncs, "syncs")

#define SOURCE(name, type, kind, of, source) source,
#define DECLARATION(name, type, kind, of, source) ", " #name " " #type
#define KIND(name, type, kind, of, source) kind,
#define NUMBER(name, type, kind, of, source) COLUMN_##name,
#define OF(name, type, kind, of, source) COLUMN_##of,

enum column { COLUMNS(NUMBER) COLUMN_COUNT };
static const char *const sources[] = { COLUMNS(SOURCE) };
static const uint8_t column_of[] = { COLUMNS(OF) };
static const enum grouped_kind kinds[] = { COLUMNS(KIND) };
static const char declarations[] = COLUMNS(DECLARATION);

/* The indexes in a row of queries: its id, the columns above, and others. */
enum {
	ROW_ID,
	ROW_COLUMNS,
	ROW_PARENT = ROW_COLUMNS + COLUMN_COUNT,
	ROW_SAMPLES_CPU,
	ROW_SAMPLES_REAL,
	ROW_DURATION,
	ROW_EXECUTION,
	ROW_COUNT
};

struct source {
	struct interner texts;
	/* While runs are read. */
	struct grouped *grouped;
	struct selected_runs runs;
	sqlite3_stmt *exception_of;
	uint64_t used, read; /* columns */
};

/* An SQLite result. */
static int find_exception(struct source *source, const int64_t *row, int64_t *word)
{
	const bool has_failed = row[ROW_COLUMNS + COLUMN_exception_code];
	const char *text = NULL;

	if (has_failed)
		sqlite3_bind_int64(source->exception_of, 1, row[ROW_ID]);
	if (has_failed && sqlite3_step(source->exception_of) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(source->exception_of, 0);
	const uint32_t number = interner_number(&source->texts, text ? text : "");
	*word = number;
	const int code = has_failed ? sqlite3_reset(source->exception_of) : SQLITE_OK;
	return number == INTERNER_NO_MEMORY ? SQLITE_NOMEM : code;
}

/* The value of a column that is not in queries. An SQLite result. */
static int work_out(struct source *source, const int64_t *row, enum column column, int64_t *word)
{
	const int64_t samples = row[ROW_SAMPLES_CPU] + row[ROW_SAMPLES_REAL];
	const int64_t ns = row[ROW_EXECUTION] == TABLE_PAGES_NULL ? row[ROW_DURATION] : row[ROW_EXECUTION];

	switch (column) {
	case COLUMN_hash:
		*word = selected_runs_statement(&source->runs, row[ROW_COLUMNS + COLUMN_statement]).hash;
		break;
	case COLUMN_nested: *word = row[ROW_PARENT] != 0; break;
	case COLUMN_sampled: *word = samples > 0; break;
	case COLUMN_exception: return find_exception(source, row, word);
	case COLUMN_runs: *word = 1; break;
	case COLUMN_run: *word = row[ROW_ID]; break;
	case COLUMN_samples: *word = samples; break;
	case COLUMN_last: *word = row[ROW_COLUMNS + COLUMN_first] + row[ROW_DURATION]; break;
	case COLUMN_ns: *word = ns; break;
	case COLUMN_outside: *word = row[ROW_DURATION] - ns; break;
	default: *word = row[ROW_COLUMNS + column];
	}
	return SQLITE_OK;
}

/* Sets the columns that follow from others. */
static void set_others(const struct source *source, int64_t *words)
{
	for (uint64_t others = source->used & ~source->read; others; others &= others - 1) {
		const size_t column = (size_t)__builtin_ctzll(others);
		const int64_t value = words[column_of[column]];
		const double square = (double)value * (double)value;

		if (kinds[column] == GROUPED_REAL)
			memcpy(&words[column], &square, sizeof(square));
		else
			words[column] = value;
	}
}

static int take_run(void *context, const int64_t *row)
{
	struct source *source = context;

	if (!row[ROW_COLUMNS + COLUMN_finished] && !row[ROW_COLUMNS + COLUMN_statement])
		return SQLITE_OK;
	int64_t *words = grouped_add(source->grouped);
	int code = words ? SQLITE_OK : SQLITE_NOMEM;

	for (uint64_t left = source->read; !code && left; left &= left - 1) {
		const enum column column = (enum column)__builtin_ctzll(left);

		code = work_out(source, row, column, &words[column]);
	}
	if (!code)
		set_others(source, words);
	return code;
}

/* Always reads the columns that the computed ones need. */
static int read_runs(sqlite3 *db, void *own, struct grouped *grouped, uint64_t used)
{
	struct source *source = own;
	const char *columns[ROW_COUNT] = {
		[ROW_ID] = "id",
		[ROW_PARENT] = "parent",
		[ROW_SAMPLES_CPU] = "samples_cpu",
		[ROW_SAMPLES_REAL] = "samples_real",
		[ROW_DURATION] = "query_duration_ns",
		[ROW_EXECUTION] = "execution_ns",
	};

	source->grouped = grouped;
	source->used = used;
	source->read = 0;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		source->read |= (used >> i & 1) << column_of[i];
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		columns[ROW_COLUMNS + i] = sources[i];
	int code = sqlite3_prepare_v2(db, "SELECT exception FROM queries WHERE id = ?", -1,
	                              &source->exception_of, NULL);
	if (!code)
		code = selected_runs_each(&source->runs, db, columns, ROW_COUNT, take_run, source);
	sqlite3_finalize(source->exception_of);
	selected_runs_free(&source->runs);
	return code;
}

static const char *text_of(const void *own, int64_t word)
{
	const struct source *source = own;

	return source->texts.texts.items[word];
}

static void free_source(void *own)
{
	struct source *source = own;

	interner_free(&source->texts);
}

int summed_runs_add(sqlite3 *db)
{
	static const struct made_table made = {
		.name = "summed_runs",
		.columns = declarations + 2, /* after ", " */
		GROUPED_METHODS,
	};
	static const struct grouped_table table = {
		.kinds = kinds,
		.count = COLUMN_COUNT,
		.own_size = sizeof(struct source),
		.read = read_runs,
		.text = text_of,
		.free_own = free_source,
	};

	return grouped_replace(db, &made, &table);
}
