/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/statements.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "query/normalize.h"
#include "query/statement_stats.h"
#include "store/write/intern.h"
#include "store/write/statements_sql.h"
#include "wire/statement_memory.h"
#include "wire/statement_record.h"

/* --- a row ------------------------------------------------------------------------------- */

static void bind_INTEGER(sqlite3_stmt *statement, int index, int64_t number)
{
	sqlite3_bind_int64(statement, index, number);
}

static void bind_REAL(sqlite3_stmt *statement, int index, double number)
{
	sqlite3_bind_double(statement, index, number);
}

static void bind_TEXT(sqlite3_stmt *statement, int index, const char *text)
{
	writer_bind_text(statement, index, text, SIZE_MAX);
}

#define BIND(name, type, value) bind_##type(upsert, ++index, value);
#define BIND_PART(i) bind_INTEGER(upsert, ++index, (int64_t)stats->counts->runs[i]);
#define BIND_LEAST(name, type, value)                                                                        \
	if (value)                                                                                           \
		bind_##type(upsert, ++index, value);                                                         \
	else                                                                                                 \
		sqlite3_bind_null(upsert, ++index);

/* Once a transaction: followers of the file find in `state` that there are newer counters. */
static int announce_batch(struct writer *writer)
{
	if (writer->is_batch_announced)
		return SQLITE_OK;
	writer->is_batch_announced = true;
	return writer_run_sql(writer, "UPDATE state SET statement_batches = ?1", writer->statement_batch, 0);
}

static int write_part(struct writer *writer, const struct statement_stats *stats, int64_t statement)
{
	sqlite3_stmt *upsert = writer_statement(writer, WRITE_STATEMENT_PART);
	const struct statement_counts *counts = stats->counts;
	const enum statement_sum sums[] = { STATEMENT_CALLS,     STATEMENT_ERRORS,
		                            STATEMENT_ROWS,      STATEMENT_EXECUTION_NS,
		                            STATEMENT_CPU_NS,    STATEMENT_DURATION_NS,
		                            STATEMENT_NESTED_NS, STATEMENT_NESTED_CPU_NS };
	int index = 0;

	/* What a statement has without a part is seen in its sums: its labels are not known. */
	if (normalize_comments(stats->text, strlen(stats->text)) != stats->part.labels)
		return SQLITE_OK;
	bind_INTEGER(upsert, ++index, (int64_t)stats->hash);
	bind_TEXT(upsert, ++index, stats->database);
	bind_TEXT(upsert, ++index, writer->identity.executable);
	bind_INTEGER(upsert, ++index, (int64_t)stats->part.layout);
	bind_INTEGER(upsert, ++index, stats->part.period);
	bind_INTEGER(upsert, ++index, statement);
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		bind_INTEGER(upsert, ++index, (int64_t)counts->sums[sums[i]]);
	bind_INTEGER(upsert, ++index, (int64_t)counts->most[MOST_EXECUTION_NS]);
	bind_INTEGER(upsert, ++index, (int64_t)statement_least(counts, LEAST_SEEN_NS));
	bind_INTEGER(upsert, ++index, (int64_t)counts->most[MOST_SEEN_NS]);
	return writer_run(writer, WRITE_STATEMENT_PART);
}

static int write_statement(void *context, const struct statement_stats *stats)
{
	struct writer *writer = context;
	sqlite3_stmt *upsert = writer_statement(writer, WRITE_STATEMENT_COUNTS);
	const char *program = writer->identity.executable;
	int64_t statement =
		intern_statement(writer, stats->text, strlen(stats->text), stats->is_cut, true, stats->hash);
	int index = 0, code;

	if (statement < 0)
		return (int)-statement;
	bind_INTEGER(upsert, ++index, statement);
	bind_INTEGER(upsert, ++index, writer->statement_batch);
	/* clang-format off */
	STATEMENT_STATS_COLUMNS(BIND, WRITER_NOTHING, BIND, BIND_PART, BIND_LEAST, BIND, WRITER_NOTHING)
	/* clang-format on */
	if (writer->counted_statements >= 0)
		writer->counted_statements++; /* at most: the row may be there */
	code = writer_run(writer, WRITE_STATEMENT_COUNTS);
	if (!code)
		code = write_part(writer, stats, statement);
	return code ? code : announce_batch(writer);
}

int statements_write_record(struct writer *writer, const struct statement_record *record, size_t size)
{
	uint64_t texts;
	const char *database;

	if (size < sizeof *record)
		return SQLITE_OK;
	texts = (uint64_t)record->text_size + record->database_size;
	database = record->text + record->text_size;
	if (!record->text_size || !record->database_size || texts > size - sizeof *record || database[-1] ||
	    database[record->database_size - 1])
		return SQLITE_OK;
	return write_statement(writer,
	                       &(struct statement_stats){ record->hash, record->text, database,
	                                                  record->is_cut, &record->counts, record->part });
}

/* --- of a process that is gone --------------------------------------------------------------- */

int statements_write_remains(struct writer *writer, const void *memory, size_t size)
{
	sqlite3_stmt *find = writer_statement(writer, WRITE_FIND_FLUSH);

	writer_bind_text(find, 1, writer->identity.hostname, SIZE_MAX);
	sqlite3_bind_int64(find, 2, writer->identity.process_id);
	sqlite3_bind_int64(find, 3, writer->identity.start_time_ns);
	return statement_memory_remains(memory, size, (uint64_t)writer_number(writer, WRITE_FIND_FLUSH),
	                                write_statement, writer);
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

/* The rows that go: the least used. */
#define GOING                                                                                                \
	" FROM statement_counters WHERE normalized_query_hash <> 0"                                          \
	" ORDER BY calls, last_seen_ns, normalized_query_hash, database, program LIMIT %1$" PRId64

static const char fold_sql[] =
	"INSERT INTO statement_counters (" STATEMENTS_NAMES ") SELECT %2$" PRId64
	", (SELECT statement_batches + 1 FROM state)" STATEMENT_STATS_COLUMNS(
		KEY_OF_OTHER, WRITER_NOTHING, SUM, SUM_PART, LEAST_OF, MOST_OF,
		WRITER_NOTHING) " FROM (SELECT *" GOING ") WHERE true GROUP BY program" STATEMENTS_ON_CONFLICT
				"; DELETE FROM statement_counters WHERE (normalized_query_hash, database, "
				"program) IN"
				" (SELECT normalized_query_hash, database, program" GOING ")"
				"; DELETE FROM statement_parts WHERE (normalized_query_hash, database, "
				"program)"
				" NOT IN (SELECT normalized_query_hash, database, program FROM "
				"statement_counters)"
				"; DELETE FROM statements WHERE id NOT IN (SELECT statement FROM "
				"statement_counters)"
				" AND NOT EXISTS (SELECT 1 FROM queries WHERE statement = statements.id)"
				/* so that no writer goes on with the rows that went */
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

static int write_flush(struct writer *writer, uint64_t flush)
{
	int64_t process = intern_process(writer);
	sqlite3_stmt *update = writer_statement(writer, WRITE_FLUSH);

	if (process < 0)
		return (int)-process;
	sqlite3_bind_int64(update, 1, (int64_t)flush);
	sqlite3_bind_int64(update, 2, process);
	return writer_run(writer, WRITE_FLUSH);
}

int statements_write(struct writer *writer)
{
	int64_t most = (int64_t)statement_stats_max();
	int code = statement_stats_take(write_statement, writer);

	if (!code && statement_stats_flush())
		code = write_flush(writer, statement_stats_flush());
	if (code || (writer->counted_statements >= 0 && writer->counted_statements <= most))
		return code;
	writer->counted_statements = statements_count(writer);
	/* A 16th more than has to go, so that it comes seldom. */
	if (writer->counted_statements <= most)
		return SQLITE_OK;
	return statements_fold(writer, writer->counted_statements - (most - most / 16));
}
