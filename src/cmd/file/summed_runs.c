/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite hands the values to an aggregate function, as in selected_samples.c.
 */
#include "cmd/file/summed_runs.h"

#include <string.h>

#include "base/interner.h"
#include "cmd/file/grouped.h"

/* The columns of run_values, how they are summed up, and the column that has their value, or the root of it.
 */
#define COLUMNS(COLUMN)                                                                                      \
	COLUMN(statement, INTEGER, GROUPED_KEY, statement)                                                   \
	COLUMN(hash, INTEGER, GROUPED_KEY, hash)                                                             \
	COLUMN(program, INTEGER, GROUPED_KEY, program)                                                       \
	COLUMN(call_stack, INTEGER, GROUPED_KEY, call_stack)                                                 \
	COLUMN(finished, INTEGER, GROUPED_BIT, finished)                                                     \
	COLUMN(nested, INTEGER, GROUPED_BIT, nested)                                                         \
	COLUMN(sampled, INTEGER, GROUPED_BIT, sampled)                                                       \
	COLUMN(process, INTEGER, GROUPED_KEY, process)                                                       \
	COLUMN(library, INTEGER, GROUPED_KEY, library)                                                       \
	COLUMN(exception_code, INTEGER, GROUPED_KEY, exception_code)                                         \
	COLUMN(exception, TEXT, GROUPED_TEXT, exception)                                                     \
	COLUMN(runs, INTEGER, GROUPED_SUM, runs)                                                             \
	COLUMN(run, INTEGER, GROUPED_LEAST, run)                                                             \
	COLUMN(samples, INTEGER, GROUPED_SUM, samples)                                                       \
	COLUMN(first, INTEGER, GROUPED_LEAST, first)                                                         \
	COLUMN(newest, INTEGER, GROUPED_MOST, first)                                                         \
	COLUMN(last, INTEGER, GROUPED_MOST, last)                                                            \
	COLUMN(ns, INTEGER, GROUPED_SUM, ns)                                                                 \
	COLUMN(longest, INTEGER, GROUPED_MOST, ns)                                                           \
	COLUMN(cpu, INTEGER, GROUPED_SUM, cpu)                                                               \
	COLUMN(outside, INTEGER, GROUPED_SUM, outside)                                                       \
	COLUMN(ns_square, REAL, GROUPED_REAL, ns)                                                            \
	COLUMN(cpu_square, REAL, GROUPED_REAL, cpu)                                                          \
	COLUMN(workers, INTEGER, GROUPED_SUM, workers)                                                       \
	COLUMN(rows, INTEGER, GROUPED_SUM, rows)                                                             \
	COLUMN(vm_steps, INTEGER, GROUPED_SUM, vm_steps)                                                     \
	COLUMN(fullscan_steps, INTEGER, GROUPED_SUM, fullscan_steps)                                         \
	COLUMN(most_scanned, INTEGER, GROUPED_MOST, fullscan_steps)                                          \
	COLUMN(sorts, INTEGER, GROUPED_SUM, sorts)                                                           \
	COLUMN(autoindexes, INTEGER, GROUPED_SUM, autoindexes)                                               \
	COLUMN(prepare, INTEGER, GROUPED_SUM, prepare)                                                       \
	COLUMN(locks, INTEGER, GROUPED_SUM, locks)                                                           \
	COLUMN(read_ns, INTEGER, GROUPED_SUM, read_ns)                                                       \
	COLUMN(write_ns, INTEGER, GROUPED_SUM, write_ns)                                                     \
	COLUMN(sync_ns, INTEGER, GROUPED_SUM, sync_ns)                                                       \
	COLUMN(mutexes, INTEGER, GROUPED_SUM, mutexes)                                                       \
	COLUMN(sleeps, INTEGER, GROUPED_SUM, sleeps)                                                         \
	COLUMN(others, INTEGER, GROUPED_SUM, others)                                                         \
	COLUMN(queue, INTEGER, GROUPED_SUM, queue)                                                           \
	COLUMN(rest, INTEGER, GROUPED_SUM, rest)                                                             \
	COLUMN(dropped, INTEGER, GROUPED_SUM, dropped)                                                       \
	COLUMN(reads, INTEGER, GROUPED_SUM, reads)                                                           \
	COLUMN(read_bytes, INTEGER, GROUPED_SUM, read_bytes)                                                 \
	COLUMN(writes, INTEGER, GROUPED_SUM, writes)                                                         \
	COLUMN(write_bytes, INTEGER, GROUPED_SUM, write_bytes)                                               \
	COLUMN(syncs, INTEGER, GROUPED_SUM, syncs)

#define NAME(name, type, kind, of) #name,
#define DECLARATION(name, type, kind, of) ", " #name " " #type
#define KIND(name, type, kind, of) kind,
#define NUMBER(name, type, kind, of) COLUMN_##name,
#define OF(name, type, kind, of) COLUMN_##of,

enum column { COLUMNS(NUMBER) COLUMN_COUNT };
static const char *const names[] = { COLUMNS(NAME) };
static const uint8_t column_of[] = { COLUMNS(OF) };
static const enum grouped_kind kinds[] = { COLUMNS(KIND) };
static const char declarations[] = COLUMNS(DECLARATION);

#define POINTER "summed_runs"

struct source {
	struct interner texts;
	/* While runs are read. */
	struct grouped *grouped;
	uint64_t used, read; /* columns */
};

/* False: no memory. */
static bool set_word(struct source *source, sqlite3_value *value, enum grouped_kind kind, int64_t *word)
{
	if (kind == GROUPED_TEXT) {
		const char *text = (const char *)sqlite3_value_text(value);
		const uint32_t number = interner_number(&source->texts, text ? text : "");

		*word = number;
		return number != INTERNER_NO_MEMORY;
	}
	*word = sqlite3_value_int64(value);
	return true;
}

/* The columns that follow from others. */
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

/* The arguments are the source, and the columns that are read. */
static void take_run(sqlite3_context *context, int argc, sqlite3_value **values)
{
	struct source *source = sqlite3_value_pointer(values[0], POINTER);
	int64_t *words = source ? grouped_add(source->grouped) : NULL;
	uint64_t left = source ? source->read : 0;
	bool fine = words;

	for (int i = 1; fine && i < argc; i++, left &= left - 1) {
		const size_t column = (size_t)__builtin_ctzll(left);

		fine = set_word(source, values[i], kinds[column], &words[column]);
	}
	if (fine)
		set_others(source, words);
	if (!source)
		sqlite3_result_error_code(context, SQLITE_MISUSE);
	else if (!fine)
		sqlite3_result_error_nomem(context);
}

static void end_runs(sqlite3_context *context)
{
	sqlite3_result_null(context);
}

static int read_runs(sqlite3 *db, void *own, struct grouped *grouped, uint64_t used)
{
	struct source *source = own;
	sqlite3_str *sql = sqlite3_str_new(db);
	sqlite3_stmt *rows = NULL;

	source->grouped = grouped;
	source->used = used;
	source->read = 0;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		source->read |= (used >> i & 1) << column_of[i];
	sqlite3_str_appendall(sql, "SELECT takeRun(?1");
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (source->read >> i & 1)
			sqlite3_str_appendf(sql, ", %s", names[i]);
	sqlite3_str_appendall(sql, ") FROM temp.run_values");
	char *text = sqlite3_str_finish(sql);
	int code = text ? sqlite3_prepare_v2(db, text, -1, &rows, NULL) : SQLITE_NOMEM;
	sqlite3_free(text);
	if (!code)
		code = sqlite3_bind_pointer(rows, 1, source, POINTER, NULL);
	if (!code && (code = sqlite3_step(rows)) == SQLITE_ROW)
		code = SQLITE_OK;
	sqlite3_finalize(rows);
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
	int code = sqlite3_create_function_v2(db, "takeRun", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, NULL,
	                                      take_run, end_runs, NULL);

	return code ? code : grouped_replace(db, &made, &table);
}
