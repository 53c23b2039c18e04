/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite hands the values to an aggregate function, as in selected_samples.c.
 */
#include "cmd/file/summed_runs.h"

#include <string.h>

#include "base/interner.h"
#include "cmd/file/grouped.h"

/* The columns of run_values, and how they are summed up. */
#define COLUMNS(COLUMN)                                                                                      \
	COLUMN(statement, INTEGER, GROUPED_KEY)                                                              \
	COLUMN(hash, INTEGER, GROUPED_KEY)                                                                   \
	COLUMN(program, INTEGER, GROUPED_KEY)                                                                \
	COLUMN(call_stack, INTEGER, GROUPED_KEY)                                                             \
	COLUMN(finished, INTEGER, GROUPED_FEW)                                                               \
	COLUMN(nested, INTEGER, GROUPED_FEW)                                                                 \
	COLUMN(sampled, INTEGER, GROUPED_FEW)                                                                \
	COLUMN(process, INTEGER, GROUPED_KEY)                                                                \
	COLUMN(library, INTEGER, GROUPED_KEY)                                                                \
	COLUMN(exception_code, INTEGER, GROUPED_KEY)                                                         \
	COLUMN(exception, TEXT, GROUPED_TEXT)                                                                \
	COLUMN(runs, INTEGER, GROUPED_SUM)                                                                   \
	COLUMN(run, INTEGER, GROUPED_LEAST)                                                                  \
	COLUMN(samples, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(first, INTEGER, GROUPED_LEAST)                                                                \
	COLUMN(newest, INTEGER, GROUPED_MOST)                                                                \
	COLUMN(last, INTEGER, GROUPED_MOST)                                                                  \
	COLUMN(ns, INTEGER, GROUPED_SUM)                                                                     \
	COLUMN(longest, INTEGER, GROUPED_MOST)                                                               \
	COLUMN(cpu, INTEGER, GROUPED_SUM)                                                                    \
	COLUMN(outside, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(ns_square, REAL, GROUPED_REAL)                                                                \
	COLUMN(cpu_square, REAL, GROUPED_REAL)                                                               \
	COLUMN(workers, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(rows, INTEGER, GROUPED_SUM)                                                                   \
	COLUMN(vm_steps, INTEGER, GROUPED_SUM)                                                               \
	COLUMN(fullscan_steps, INTEGER, GROUPED_SUM)                                                         \
	COLUMN(most_scanned, INTEGER, GROUPED_MOST)                                                          \
	COLUMN(sorts, INTEGER, GROUPED_SUM)                                                                  \
	COLUMN(autoindexes, INTEGER, GROUPED_SUM)                                                            \
	COLUMN(prepare, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(locks, INTEGER, GROUPED_SUM)                                                                  \
	COLUMN(read_ns, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(write_ns, INTEGER, GROUPED_SUM)                                                               \
	COLUMN(sync_ns, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(mutexes, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(sleeps, INTEGER, GROUPED_SUM)                                                                 \
	COLUMN(others, INTEGER, GROUPED_SUM)                                                                 \
	COLUMN(queue, INTEGER, GROUPED_SUM)                                                                  \
	COLUMN(rest, INTEGER, GROUPED_SUM)                                                                   \
	COLUMN(dropped, INTEGER, GROUPED_SUM)                                                                \
	COLUMN(reads, INTEGER, GROUPED_SUM)                                                                  \
	COLUMN(read_bytes, INTEGER, GROUPED_SUM)                                                             \
	COLUMN(writes, INTEGER, GROUPED_SUM)                                                                 \
	COLUMN(write_bytes, INTEGER, GROUPED_SUM)                                                            \
	COLUMN(syncs, INTEGER, GROUPED_SUM)

#define NAME(name, type, kind) #name,
#define DECLARATION(name, type, kind) ", " #name " " #type
#define KIND(name, type, kind) kind,

static const char *const names[] = { COLUMNS(NAME) };
static const enum grouped_kind kinds[] = { COLUMNS(KIND) };
static const char declarations[] = COLUMNS(DECLARATION);

#define COUNT (sizeof(kinds) / sizeof(kinds[0]))
#define POINTER "summed_runs"

struct source {
	struct interner texts;
	/* While runs are read. */
	struct grouped *grouped;
	uint64_t used;
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
	if (kind == GROUPED_REAL) {
		const double number = sqlite3_value_double(value);

		memcpy(word, &number, sizeof(number));
	} else {
		*word = sqlite3_value_int64(value);
	}
	return true;
}

/* The arguments are the source, and the columns that are used. */
static void take_run(sqlite3_context *context, int argc, sqlite3_value **values)
{
	struct source *source = sqlite3_value_pointer(values[0], POINTER);
	int64_t *words = source ? grouped_add(source->grouped) : NULL;
	bool fine = words;

	for (int i = 1, column = 0; fine && i < argc; i++, column++) {
		while (!(source->used >> column & 1))
			column++;
		fine = set_word(source, values[i], kinds[column], &words[column]);
	}
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
	sqlite3_str_appendall(sql, "SELECT takeRun(?1");
	for (size_t i = 0; i < COUNT; i++)
		if (used >> i & 1)
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
		.count = COUNT,
		.own_size = sizeof(struct source),
		.read = read_runs,
		.text = text_of,
		.free_own = free_source,
	};
	int code = sqlite3_create_function_v2(db, "takeRun", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, NULL,
	                                      take_run, end_runs, NULL);

	return code ? code : grouped_replace(db, &made, &table);
}
