/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/statements.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "query/normalize.h"
#include "query/statement_stats.h"
#include "store/write/columns.h"
#include "store/write/texts.h"
#include "store/write/threads.h"
#include "store/write/writer.h"
#include "wire/statement_memory.h"

/* --- a row ------------------------------------------------------------------------------- */

/* SQL that adds a row of statement_counters to an existing one, by columns.h. */
#define STATEMENTS_NOTHING(...)
#define STATEMENTS_NAME(name, ...) ", " #name
#define STATEMENTS_NAME_PART(i) ", runs_" #i
#define STATEMENTS_MARK(name, ...) ", :" #name
#define STATEMENTS_MARK_PART(i) ", :runs_" #i
#define STATEMENTS_ADD(name, ...) ", " #name " = " #name " + excluded." #name
#define STATEMENTS_ADD_PART(i) ", runs_" #i " = runs_" #i " + excluded.runs_" #i
/* min() with a NULL is NULL; then the other value counts. */
#define STATEMENTS_LEAST(name, ...)                                                                          \
	", " #name " = coalesce(min(" #name ", excluded." #name "), " #name ", excluded." #name ")"
#define STATEMENTS_MOST(name, ...) ", " #name " = max(" #name ", excluded." #name ")"

#define STATEMENTS_NAMES                                                                                     \
	"statement, batch" STATEMENT_COLUMNS(STATEMENTS_NAME, STATEMENTS_NAME, STATEMENTS_NAME_PART,         \
	                                     STATEMENTS_NAME, STATEMENTS_NAME, STATEMENTS_NOTHING)
#define STATEMENTS_ON_CONFLICT                                                                               \
	" ON CONFLICT (normalized_query_hash, database, program) DO UPDATE SET batch = "                     \
	"excluded.batch" STATEMENT_COLUMNS(STATEMENTS_NOTHING, STATEMENTS_ADD, STATEMENTS_ADD_PART,          \
	                                   STATEMENTS_LEAST, STATEMENTS_MOST, STATEMENTS_NOTHING)
#define STATEMENTS_UPSERT                                                                                    \
	"INSERT INTO statement_counters (" STATEMENTS_NAMES                                                  \
	") VALUES (:statement, :batch" STATEMENT_COLUMNS(                                                    \
		STATEMENTS_MARK, STATEMENTS_MARK, STATEMENTS_MARK_PART, STATEMENTS_MARK, STATEMENTS_MARK,    \
		STATEMENTS_NOTHING) ")" STATEMENTS_ON_CONFLICT

#define PART_SUM(name) name " = " name " + excluded." name ", "

const struct counter_writer counter_writer_new = {
	.sql = {
		.add.sql = STATEMENTS_UPSERT,
		.add_part.sql =
			"INSERT INTO statement_parts (normalized_query_hash, database, program, layout, period,"
			" labels, calls, errors, rows, execution_time_ns, cpu_time_ns, duration_ns, nested_time_ns,"
			" nested_cpu_time_ns, max_ns, first_seen_ns, last_seen_ns)"
			" VALUES (:normalized_query_hash, :database, :program, :layout, :period,"
			" coalesce((SELECT labels FROM statements WHERE id = :statement), 0), :calls, :errors, :rows,"
			" :execution_time_ns, :cpu_time_ns, :duration_ns, :nested_time_ns, :nested_cpu_time_ns, :max_ns,"
			" :first_seen_ns, :last_seen_ns) ON CONFLICT DO UPDATE SET "
			PART_SUM("calls") PART_SUM("errors") PART_SUM("rows") PART_SUM("execution_time_ns")
			PART_SUM("cpu_time_ns") PART_SUM("duration_ns") PART_SUM("nested_time_ns")
			PART_SUM("nested_cpu_time_ns")
			"max_ns = max(max_ns, excluded.max_ns),"
			" first_seen_ns = min(first_seen_ns, excluded.first_seen_ns),"
			" last_seen_ns = max(last_seen_ns, excluded.last_seen_ns)",
	},
};

#define bind_INTEGER bind_number
#define bind_REAL bind_real

static void bind_TEXT(struct prepared *prepared, const char *name, const char *text)
{
	bind_text(prepared, name, text, SIZE_MAX);
}

#define BIND(name, type, value) bind_##type(add, #name, value);
#define BIND_PART(i) bind_number(add, "runs_" #i, (int64_t)stats->counts->runs[i]);
#define BIND_LEAST(name, type, value)                                                                        \
	if (value)                                                                                           \
		bind_##type(add, #name, value);                                                              \
	else                                                                                                 \
		bind_null(add, #name);

/* Once per transaction: tells followers of the file in `state` that there are newer counters. */
static int announce_batch(struct writer *writer)
{
	if (writer->counters->is_announced)
		return SQLITE_OK;
	writer->counters->is_announced = true;
	return writer_run_sql(writer, "UPDATE state SET statement_batches = ?1", writer->counters->batch, 0);
}

static int write_part(struct writer *writer, const struct statement_stats *stats, int64_t statement)
{
	struct prepared *add = &writer->counters->sql.add_part;
	const struct statement_counts *counts = stats->counts;
	const uint64_t *sums = counts->sums;

	/* Counts whose labels are not known have no part. They are only in the statement's sums. */
	if (normalize_comments(stats->text, strlen(stats->text)) != stats->part.labels)
		return SQLITE_OK;
	writer_bind(writer, add);
	bind_number(add, "normalized_query_hash", (int64_t)stats->hash);
	bind_TEXT(add, "database", stats->database);
	bind_TEXT(add, "program", writer->identity.executable);
	bind_number(add, "layout", (int64_t)stats->part.layout);
	bind_number(add, "period", stats->part.period);
	bind_number(add, "statement", statement);
	bind_number(add, "calls", (int64_t)sums[STATEMENT_CALLS]);
	bind_number(add, "errors", (int64_t)sums[STATEMENT_ERRORS]);
	bind_number(add, "rows", (int64_t)sums[STATEMENT_ROWS]);
	bind_number(add, "execution_time_ns", (int64_t)sums[STATEMENT_EXECUTION_NS]);
	bind_number(add, "cpu_time_ns", (int64_t)sums[STATEMENT_CPU_NS]);
	bind_number(add, "duration_ns", (int64_t)sums[STATEMENT_DURATION_NS]);
	bind_number(add, "nested_time_ns", (int64_t)sums[STATEMENT_NESTED_NS]);
	bind_number(add, "nested_cpu_time_ns", (int64_t)sums[STATEMENT_NESTED_CPU_NS]);
	bind_number(add, "max_ns", (int64_t)counts->most[MOST_EXECUTION_NS]);
	bind_number(add, "first_seen_ns", (int64_t)statement_least(counts, LEAST_SEEN_NS));
	bind_number(add, "last_seen_ns", (int64_t)counts->most[MOST_SEEN_NS]);
	return writer_run(writer, add);
}

static int write_statement(void *context, const struct statement_stats *stats)
{
	struct writer *writer = context;
	struct prepared *add = &writer->counters->sql.add;
	const char *program = writer->identity.executable;
	int64_t statement =
		intern_statement(writer, stats->text, strlen(stats->text), stats->is_cut, true, stats->hash);
	int code;

	if (statement < 0)
		return (int)-statement;
	writer_bind(writer, add);
	bind_number(add, "statement", statement);
	bind_number(add, "batch", writer->counters->batch);
	/* clang-format off */
	STATEMENT_COLUMNS(BIND, BIND, BIND_PART, BIND_LEAST, BIND, STATEMENTS_NOTHING)
	/* clang-format on */
	if (writer->counters->rows >= 0)
		writer->counters->rows++; /* at most, because the row may exist */
	code = writer_run(writer, add);
	if (!code)
		code = write_part(writer, stats, statement);
	return code ? code : announce_batch(writer);
}

int statements_write_other(struct writer *writer, const void *memory, size_t size,
                           struct statement_reading *reading)
{
	return statement_memory_read(memory, size, reading, write_statement, writer);
}

/* --- the bound ------------------------------------------------------------------------------ */

#define SUM(name, ...) ", sum(" #name ")"
#define SUM_PART(i) ", sum(runs_" #i ")"
#define LEAST_OF(name, ...) ", min(" #name ")"
#define MOST_OF(name, ...) ", max(" #name ")"
#define KEY_normalized_query_hash ", 0"
#define KEY_database ", ''"
#define KEY_program ", program"
#define KEY_OF_OTHER(name, ...) KEY_##name

/* The rows to remove: the least used. */
#define GOING                                                                                                \
	" FROM statement_counters WHERE normalized_query_hash <> 0"                                          \
	" ORDER BY calls, last_seen_ns, normalized_query_hash, database, program LIMIT %1$" PRId64

static const char fold_sql[] =
	"INSERT INTO statement_counters (" STATEMENTS_NAMES ") SELECT %2$" PRId64
	", (SELECT statement_batches + 1 FROM state)" STATEMENT_COLUMNS(
		KEY_OF_OTHER, SUM, SUM_PART, LEAST_OF, MOST_OF,
		STATEMENTS_NOTHING) " FROM (SELECT *" GOING
				    ") WHERE true GROUP BY program" STATEMENTS_ON_CONFLICT
				    "; DELETE FROM statement_counters WHERE (normalized_query_hash, "
				    "database, "
				    "program) IN"
				    " (SELECT normalized_query_hash, database, program" GOING ")"
				    "; DELETE FROM statement_parts WHERE (normalized_query_hash, database, "
				    "program)"
				    " NOT IN (SELECT normalized_query_hash, database, program FROM "
				    "statement_counters)"
				    "; DELETE FROM statements WHERE id NOT IN (SELECT statement FROM "
				    "statement_counters)"
				    " AND NOT EXISTS (SELECT 1 FROM queries WHERE statement = statements.id)"
				    /* so that no writer continues to use the removed rows */
				    "; UPDATE state SET removals = removals + 1, statement_batches = "
				    "statement_batches + 1";

int64_t statements_count(const struct writer *writer)
{
	return database_number(writer->database.db,
	                       "SELECT count(*) FROM statement_counters WHERE normalized_query_hash <> 0", 0);
}

int statements_fold(struct writer *writer, int64_t count)
{
	int64_t other = intern_statement(writer, "(other)", strlen("(other)"), false, true, 0);
	char *sql;
	int code;

	if (other < 0)
		return (int)-other;
	sql = text_format(fold_sql, count, other);
	code = sql ? sqlite3_exec(writer->database.db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	free(sql);
	return code;
}

int statements_write(struct writer *writer)
{
	int64_t most = (int64_t)statement_stats_max();
	int code = statement_stats_next(write_statement, writer);

	if (code || (writer->counters->rows >= 0 && writer->counters->rows <= most))
		return code;
	writer->counters->rows = statements_count(writer);
	/* Removes a 16th more than necessary, so that it is rare. */
	if (writer->counters->rows <= most)
		return SQLITE_OK;
	return statements_fold(writer, writer->counters->rows - (most - most / 16));
}
