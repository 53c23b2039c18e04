/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing connection: its statements, prepared once a file, what it knows of the
 * file, and how it waits for others. The rows come from batch.c and the files that it calls.
 */
#include "store/write/writer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "queryprof.h"
#include "store/control.h"
#include "store/file/contention.h"
#include "store/process_start.h"
#include "store/write/sample_source.h"
#include "store/write/statements_sql.h"

/* The columns of store/columns.h, in the order in which query_rows.c binds their values. */
#define SET_STORED(name, type, definition, flags, value) ", " #name " = excluded." #name
#define SET_FILED(name, type, definition, value) ", " #name " = excluded." #name
#define NAME_STORED(name, type, definition, flags, value) ", " #name
#define NAME_FILED(name, type, definition, value) ", " #name
#define MARK(...) ", ?"
#define ENDED_NAMES QUERY_LOG_COLUMNS(NAME_STORED, NAME_FILED, WRITER_NOTHING)
#define ENDED_MARKS QUERY_LOG_COLUMNS(MARK, MARK, WRITER_NOTHING)
#define ENDED_SETS QUERY_LOG_COLUMNS(SET_STORED, SET_FILED, WRITER_NOTHING)

static const char *const statement_sql[WRITE_STATEMENTS] = {
	[WRITE_BEGIN] = "BEGIN IMMEDIATE",
	[WRITE_COMMIT] = "COMMIT",
	[WRITE_ROLLBACK] = "ROLLBACK",
	[WRITE_STATE] =
		"SELECT removals, (SELECT max(id) FROM epochs), identity, (SELECT max(id) FROM "
		"batches), (SELECT max(id) FROM queries), statement_batches, program_removals FROM state",
	[WRITE_FIND_PROCESS] =
		"SELECT id FROM processes WHERE hostname = ?1 AND process_id = ?2 AND start_time_ns = ?3",
	[WRITE_PROCESS] = "INSERT INTO processes (hostname, process_id, start_time_ns, executable) VALUES "
			  "(?1, ?2, ?3, ?4)",
	[WRITE_FLUSH] = "UPDATE processes SET statements_flush = ?1 WHERE id = ?2",
	[WRITE_FIND_FLUSH] = "SELECT statements_flush FROM processes WHERE hostname = ?1 AND process_id = ?2"
			     " AND start_time_ns = ?3",
	[WRITE_FIND_THREAD] =
		"SELECT id FROM threads WHERE process = ?1 AND thread_id = ?2 AND thread_name = ?3",
	[WRITE_THREAD] = "INSERT INTO threads (process, thread_id, thread_name) VALUES (?1, ?2, ?3)",
	[WRITE_NEWEST_THREAD] =
		"SELECT id FROM threads WHERE process = ?1 AND thread_id = ?2 ORDER BY id DESC LIMIT 1",
	[WRITE_FIND_SERIES] = "SELECT id FROM series WHERE thread = ?1 AND trace_type = ?2 AND period_ns = ?3"
			      " AND stretch = ?4",
	[WRITE_SERIES] = "INSERT INTO series (thread, trace_type, period_ns, epoch, unit, stretch)"
			 " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[WRITE_SERIES_EPOCH] = "UPDATE series SET epoch = ?1 WHERE id = ?2",
	[WRITE_FIND_MODULE] = "SELECT base FROM modules WHERE build_id = ?1 AND extent = ?2"
			      " AND (?1 != '' OR (path = ?3 AND file_size = ?4 AND mtime_ns = ?5))",
	[WRITE_MODULE] = "INSERT INTO modules (build_id, path, file_size, mtime_ns, base, extent, elf_start)"
			 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[WRITE_RANGE_END] = "SELECT max(base + extent) FROM modules WHERE base < ?2 AND base + extent > ?1",
	[WRITE_FREE_RANGE] = "SELECT max(base + extent) FROM modules WHERE base + extent > ?1 AND base < ?2",
	[WRITE_FIND_STACK] = "SELECT id FROM stacks WHERE hash = ?1 AND trace = ?2",
	[WRITE_STACK] = "INSERT INTO stacks (hash, epoch, trace) VALUES (?1, ?2, ?3)",
	[WRITE_STACK_EPOCH] = "UPDATE stacks SET epoch = ?1 WHERE id = ?2",
	[WRITE_FIND_STATEMENT] = "SELECT id FROM statements WHERE hash = ?1 AND query = ?2 AND is_cut = ?3",
	[WRITE_STATEMENT] = "INSERT INTO statements (hash, normalized_query_hash, is_cut, query, labels)"
			    " VALUES (?1, ?2, ?3, ?4, ?5)",
	[WRITE_FIND_LIBRARY] = "SELECT id FROM libraries WHERE path = ?1 AND version = ?2",
	[WRITE_LIBRARY] = "INSERT INTO libraries (path, version) VALUES (?1, ?2)",
	[WRITE_FIND_QUERY] = "SELECT id FROM queries WHERE query_id = ?1 AND process = ?2",
	[WRITE_QUERY] = "INSERT INTO queries (id, query_id, process, first_ns, last_ns, session, batch)"
			" VALUES (?1, ?2, ?3, 9223372036854775807, -9223372036854775808, ?4, ?5)",
	[WRITE_QUERY_START] =
		"UPDATE queries SET initial = ?2, parent = ?3, statement = ?4, query_start_ns = ?5,"
		" thread_id = ?6, batch = ?7, program = coalesce(nullif(?8, 0), program) WHERE id = ?1 AND "
		"NOT finished",
	[WRITE_QUERY_RUNNING] = "UPDATE queries SET database = ?2, library = ?3,"
				" query_id = coalesce(nullif(?4, ''), query_id),"
				" statement = coalesce(nullif(?5, 0), statement) WHERE id = ?1",
	[WRITE_UNUSED_STATEMENT] = "DELETE FROM statements WHERE id = ?1"
				   " AND NOT EXISTS (SELECT 1 FROM queries WHERE statement = ?1)"
				   " AND NOT EXISTS (SELECT 1 FROM programs WHERE statement = ?1)"
				   " AND NOT EXISTS (SELECT 1 FROM statement_counters WHERE statement = ?1)",
	[WRITE_QUERY_END] =
		"INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished" ENDED_NAMES ")"
		" VALUES (?, ?, ?, ?, ?, 1" ENDED_MARKS ") ON CONFLICT (id) DO UPDATE SET"
		" query_id = excluded.query_id, first_ns = min(first_ns, excluded.first_ns),"
		" last_ns = max(last_ns, excluded.last_ns), finished = 1" ENDED_SETS,
	/* The record of the end knows better what the samples say of a query, if it comes. */
	[WRITE_QUERY_RANGE] =
		"UPDATE queries SET first_ns = min(first_ns, ?2), last_ns = max(last_ns, ?3),"
		" samples_cpu = samples_cpu + (NOT finished) * ?4, samples_real = samples_real + (NOT "
		"finished) * ?5,"
		" weight_cpu = weight_cpu + (NOT finished) * ?6, weight_real = weight_real + (NOT finished) "
		"* ?7,"
		" cpu_time_ns = cpu_time_ns + (NOT finished) * ?8, query_duration_ns ="
		" iif(finished OR NOT statement, query_duration_ns, max(last_ns, ?3) - query_start_ns),"
		/* what is between its calls, as it was seen open last */
		" execution_ns = iif(finished OR NOT statement, execution_ns, max(last_ns, ?3) - "
		"query_start_ns"
		" - coalesce(?11, query_duration_ns - execution_ns)),"
		" labels = iif(labels, labels, ?9), context = iif(context, context, ?10)"
		" WHERE id = ?1",
	[WRITE_SAMPLES] = "INSERT OR FAIL INTO samples (" SAMPLE_ROW_COLUMNS ") SELECT " SAMPLE_ROW_COLUMNS
			  " FROM samples_to_write",
	[WRITE_LAST_TIME] =
		"SELECT max(timestamp_ns) FROM samples WHERE timestamp_ns >= ?1 AND timestamp_ns < ?2",
	[WRITE_EPOCH] =
		"INSERT INTO epochs (start_ns) SELECT 1 + coalesce(max(timestamp_ns), 0) FROM samples",
	[WRITE_BATCH] =
		"INSERT INTO batches (id, process, before_ns, first_ns, last_ns, samples, total, thread)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6,"
		" ?6 + coalesce((SELECT total FROM batches ORDER BY id DESC LIMIT 1), 0),"
		" coalesce((SELECT max(id) FROM threads), 0))",
	[WRITE_FIND_BATCH] = "SELECT b.id FROM processes AS p JOIN batches AS b ON b.process = p.id"
			     " WHERE p.hostname = ?1 AND p.process_id = ?2 AND p.start_time_ns = ?3"
			     " AND b.id = ?4",
	[WRITE_NEWEST] = "SELECT max(before_ns, last_ns) FROM batches WHERE process = ?1"
			 " ORDER BY id DESC LIMIT 1",
	[WRITE_LOSS] = "INSERT OR REPLACE INTO losses (process, reason, first_ns, last_ns, samples, refusals)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[WRITE_REMOVE_OPEN_WAIT] = "DELETE FROM waits_for_locks WHERE process = ?1 AND thread_id = ?2 AND "
				   "start_ns = ?3 AND refused = 2",
	[WRITE_LOCK_WAITED] = "UPDATE waits_for_locks SET wait_ns = max(wait_ns, ?3) WHERE refused = 2 AND"
			      " process = ?1 AND thread_id = ?2 AND start_ns = (SELECT max(start_ns) FROM"
			      " waits_for_locks WHERE process = ?1 AND thread_id = ?2)",
	[WRITE_LOCK_WAIT] =
		"INSERT INTO waits_for_locks (query, start_ns, wait_ns, lock, refused, thread_id, process,"
		" database, holder, holder_query, holder_session, holder_process_id, holder_thread_id,"
		" holder_transaction)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
	[WRITE_TRANSACTION] =
		"INSERT INTO transactions (process, number, session, thread_id, start_ns, duration_ns,"
		" write_ns, exclusive_ns, idle_ns, statements, outcome, waited_for, first, last, database,"
		" first_query, last_query, pending_ns)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
	[WRITE_LATE_SAMPLE] = "INSERT INTO late_samples (timestamp_ns, batch) VALUES (?1, ?2)",
	[WRITE_STATEMENT_COUNTS] = STATEMENTS_UPSERT,
	[WRITE_STATEMENT_PART] =
		"INSERT INTO statement_parts (normalized_query_hash, database, program, layout, period, "
		"labels,"
		" calls, errors, rows, execution_time_ns, cpu_time_ns, duration_ns, nested_time_ns,"
		" nested_cpu_time_ns, max_ns, first_seen_ns, last_seen_ns)"
		" VALUES (?1, ?2, ?3, ?4, ?5, coalesce((SELECT labels FROM statements WHERE id = ?6), 0), "
		"?7, ?8, ?9, ?10, ?11, ?12, ?13,"
		" ?14, ?15, ?16, ?17) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, errors = "
		"errors + excluded.errors,"
		" rows = rows + excluded.rows, execution_time_ns = execution_time_ns + "
		"excluded.execution_time_ns,"
		" cpu_time_ns = cpu_time_ns + excluded.cpu_time_ns, duration_ns = duration_ns + "
		"excluded.duration_ns,"
		" nested_time_ns = nested_time_ns + excluded.nested_time_ns,"
		" nested_cpu_time_ns = nested_cpu_time_ns + excluded.nested_cpu_time_ns,"
		" max_ns = max(max_ns, excluded.max_ns), first_seen_ns = min(first_seen_ns, "
		"excluded.first_seen_ns),"
		" last_seen_ns = max(last_seen_ns, excluded.last_seen_ns)",
	[WRITE_FIND_LABELS] = "SELECT id FROM label_sets WHERE hash = ?1",
	[WRITE_LABELS] = "INSERT INTO label_sets (hash, epoch, labels, units, otel_trace_id, otel_span_id)"
			 " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[WRITE_LABELS_TEXT] = "SELECT labels || units FROM label_sets WHERE id = ?1",
	[WRITE_LABELS_EPOCH] = "UPDATE label_sets SET epoch = ?1 WHERE id = ?2 AND epoch <> ?1",
	[WRITE_LABEL_VALUE] = "INSERT OR IGNORE INTO label_values (labels, key, value, unit, member) VALUES "
			      "(?1, ?2, ?3, ?4, ?5)",
	[WRITE_LABEL_USE] =
		"INSERT OR IGNORE INTO label_uses (process, trampoline, from_ns, until_ns, labels, address)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[WRITE_LABEL_USE_END] = "UPDATE label_uses SET until_ns = ?4"
				" WHERE process = ?1 AND trampoline = ?2 AND from_ns = ?3",
	[WRITE_FIND_CONTEXT] = "SELECT id FROM trace_contexts WHERE otel_span_id = ?1 AND otel_trace_id = ?2",
	[WRITE_CONTEXT] =
		"INSERT INTO trace_contexts (otel_span_id, otel_trace_id, epoch) VALUES (?1, ?2, ?3)",
	[WRITE_CONTEXT_EPOCH] = "UPDATE trace_contexts SET epoch = ?1 WHERE id = ?2 AND epoch <> ?1",
	[WRITE_FIND_SPAN_SITE] = "SELECT id FROM span_sites WHERE name = ?1 AND file = ?2 AND line = ?3"
				 " AND function = ?4 AND statement = ?5 AND wait = ?6",
	[WRITE_SPAN_SITE] = "INSERT INTO span_sites (name, file, line, function, statement, wait)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	/* OR FAIL: the writer takes all back on an error, and SQLite remembers less. */
	[WRITE_SPAN_ROWS] = "INSERT OR FAIL INTO span_batches (" SPAN_ROW_COLUMNS ") SELECT " SPAN_ROW_COLUMNS
			    " FROM span_rows_to_write",
	[WRITE_NEWEST_SPANS] = "SELECT max(id) FROM span_batches",
	[WRITE_SPAN_NOTE] = "INSERT INTO span_notes (batch, span, is_event, note) VALUES (?1, ?2, ?3, ?4)",
	[WRITE_SPAN_LINK] =
		"INSERT INTO span_links (batch, trace_hi, trace_lo, parent) VALUES (?1, ?2, ?3, ?4)",
	[WRITE_SPAN_WAIT] = "INSERT OR IGNORE INTO span_waits (start_ns, thread, duration_ns, span)"
			    " VALUES (?1, ?2, ?3, ?4)",
	/* The trace that query_log shows. */
	[WRITE_FIND_TRACE] =
		"SELECT coalesce(c.otel_trace_id, nullif(h.otel_trace_id, ''), nullif(g.otel_trace_id, '')),"
		" coalesce(c.otel_span_id, nullif(h.otel_span_id, ''), g.otel_span_id) FROM (SELECT 1)"
		" LEFT JOIN trace_contexts AS c ON c.id = ?1 LEFT JOIN statements AS x ON x.id = ?2"
		" LEFT JOIN label_sets AS h ON h.id = x.labels LEFT JOIN label_sets AS g ON g.id = ?3",
	[WRITE_REMOVE_FOREIGN] =
		"DELETE FROM span_batches WHERE trace_hi = ?1 AND first_span = ?2 AND id < ?3",
	[WRITE_REMOVE_NOTES] = "DELETE FROM span_notes WHERE batch IN (SELECT id FROM span_batches"
			       " WHERE trace_lo = ?2 AND trace_hi = ?1)"
			       " AND batch NOT IN (SELECT batch FROM span_links)",
	[WRITE_EMPTY_NEWEST] =
		"UPDATE span_batches SET count = 0, statements = 0, duration_ns = NULL, spans = '[]'"
		" WHERE id = (SELECT max(id) FROM span_batches)"
		" AND trace_lo = ?2 AND trace_hi = ?1"
		" AND id NOT IN (SELECT batch FROM span_links) RETURNING id",
	[WRITE_REMOVE_TRACE] = "DELETE FROM span_batches WHERE id < (SELECT max(id) FROM span_batches)"
			       " AND (trace_lo = ?2 AND trace_hi = ?1"
			       " AND id NOT IN (SELECT batch FROM span_links) OR id = ?3 AND spans = '[]')",
	[WRITE_PROGRAM] = "INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns, layout)"
			  " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
			  /* an older version kept none */
			  " ON CONFLICT DO UPDATE SET layout = excluded.layout WHERE layout = 0",
	[WRITE_PLAN] = "INSERT OR IGNORE INTO plans (plan_hash, plan) VALUES (?1, ?2)",
	[WRITE_PLAN_NODE] = "INSERT OR IGNORE INTO plan_nodes (program, node, parent, detail, compared)"
			    " VALUES (?1, ?2, ?3, ?4, ?5)",
	[WRITE_PROGRAM_OPCODE] =
		"INSERT OR IGNORE INTO program_opcodes (program, node, address, opcode, p1, p2, p3, p5)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[WRITE_PLAN_MISSING] = "INSERT OR REPLACE INTO missing_plans (program, reason)"
			       " SELECT ?1, ?3 WHERE NOT EXISTS (SELECT 1 FROM programs WHERE id = ?1)",
	[WRITE_PLAN_FOUND] = "DELETE FROM missing_plans WHERE program = ?1",
	[WRITE_PLAN_LOOP] = "INSERT OR IGNORE INTO plan_loops (query, node, loops, rows)"
			    " VALUES (?1, ?2, ?3, ?4)",
};

/* --- prepared statements ------------------------------------------------------- */

/* Prepared when it is first used: a short process uses a third of them. NULL: it cannot be prepared; binding
 * to it does nothing, and what runs it has the error. */
sqlite3_stmt *writer_statement(struct writer *writer, enum writer_statement which)
{
	if (!writer->statements[which])
		sqlite3_prepare_v3(writer->database.db, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT,
		                   &writer->statements[which], NULL);
	return writer->statements[which];
}

static int step(struct writer *writer, sqlite3_stmt *statement)
{
	return statement ? sqlite3_step(statement) : sqlite3_extended_errcode(writer->database.db);
}

/* Cut at a zero inside, if `size` does not say; the text must stay until the
 * statement has run. */
void writer_bind_text(sqlite3_stmt *statement, int index, const char *text, size_t size)
{
	sqlite3_bind_text(statement, index, text, size == SIZE_MAX ? -1 : (int)size, SQLITE_STATIC);
}

int writer_run(struct writer *writer, enum writer_statement which)
{
	sqlite3_stmt *statement = writer_statement(writer, which);
	int code = step(writer, statement);

	sqlite3_reset(statement);
	return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

int64_t writer_number(struct writer *writer, enum writer_statement which)
{
	sqlite3_stmt *statement = writer_statement(writer, which);
	int code = step(writer, statement);
	int64_t number = 0;

	if (code == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	else if (code != SQLITE_DONE)
		number = -code;
	sqlite3_reset(statement);
	return number;
}

/* With its parameters. SQLITE_OK or the error. */
static int find_kept(struct writer *writer, const char *sql, int64_t a, int64_t b, sqlite3_stmt **statement)
{
	struct kept_statement *kept = writer->kept.items;
	const struct kept_statement *end = kept + writer->kept.count;
	int code;

	while (kept < end && kept->sql != sql)
		kept++;
	if (kept == end) {
		kept = vector_add(&writer->kept);
		if (!kept)
			return SQLITE_NOMEM;
		code = sqlite3_prepare_v3(writer->database.db, sql, -1, SQLITE_PREPARE_PERSISTENT,
		                          &kept->statement, NULL);
		if (code) {
			writer->kept.count--;
			return code;
		}
		kept->sql = sql;
	}
	*statement = kept->statement;
	sqlite3_bind_int64(*statement, 1, a); /* refused where there is no such parameter */
	sqlite3_bind_int64(*statement, 2, b);
	return SQLITE_OK;
}

int writer_run_sql(struct writer *writer, const char *sql, int64_t a, int64_t b)
{
	sqlite3_stmt *statement;
	int code = find_kept(writer, sql, a, b, &statement);

	if (code)
		return code;
	sqlite3_step(statement);
	return sqlite3_reset(statement);
}

int64_t writer_ask_sql(struct writer *writer, const char *sql, int64_t a, int64_t otherwise)
{
	sqlite3_stmt *statement;
	int64_t number = otherwise;

	if (find_kept(writer, sql, a, 0, &statement))
		return otherwise;
	if (sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return number;
}

void writer_leave_statements(struct writer *writer)
{
	memset(writer->statements, 0, sizeof writer->statements);
	writer->kept.count = 0;
}

void writer_roll_back(struct writer *writer)
{
	free(writer->failure);
	writer->failure = database_error(writer->database.db, writer->path);
	/* SQLite has rolled it back itself where the disk was full. */
	if (!sqlite3_get_autocommit(writer->database.db))
		writer_run(writer, WRITE_ROLLBACK);
}

int writer_end(struct writer *writer, int code)
{
	if (!code)
		code = writer_run(writer, WRITE_COMMIT);
	if (code)
		writer_roll_back(writer);
	return code;
}

char *writer_failure(struct writer *writer)
{
	char *failure = writer->failure;

	writer->failure = NULL;
	return failure ? failure : database_error(writer->database.db, writer->path);
}

void writer_widen_span(struct writer *writer, uint32_t index, int64_t first_ns, int64_t last_ns)
{
	struct query_span *span;

	if (index >= writer->spans.count)
		return;
	span = &writer->spans.items[index];
	if (first_ns < span->first_ns)
		span->first_ns = first_ns;
	if (last_ns > span->last_ns)
		span->last_ns = last_ns;
}

/* --- life ------------------------------------------------------------------------- */

const struct writer_identity *writer_identity_here(void)
{
	static struct writer_identity identity; /* one row a process, however many writers it has */
	ssize_t size;

	if (identity.process_id == getpid())
		return &identity;
	if (gethostname(identity.hostname, sizeof identity.hostname))
		identity.hostname[0] = '\0';
	identity.hostname[sizeof identity.hostname - 1] = '\0';
	size = readlink("/proc/self/exe", identity.executable, sizeof identity.executable - 1);
	identity.executable[size > 0 ? size : 0] = '\0';
	identity.start_time_ns = store_process_start();
	identity.process_id = getpid();
	return &identity;
}

void writer_reset_identity(struct writer *writer)
{
	writer->identity = *writer_identity_here();
	hash_table_clear(&writer->threads);
	writer_forget(writer);
}

bool writer_init(struct writer *writer, bool (*give_up)(void *context), void *context)
{
	*writer = (struct writer){
		.database = { .guard = -1 },
		.threads = HASH_TABLE_OF(struct known_thread, 1 << 15),
		.series = HASH_TABLE_OF(struct known_series, 1 << 15),
		.stacks = HASH_TABLE_OF(struct known_stack, 1 << 18),
		.queries = HASH_TABLE_OF(struct known_query, SIZE_MAX), /* intern_begin_batch() */
		.earlier_queries = HASH_TABLE_OF(struct known_query, SIZE_MAX),
		.texts = HASH_TABLE_OF(struct known_text, 1 << 14),
		.libraries = HASH_TABLE_OF(struct known_text, 16),
		.modules = HASH_TABLE_OF(struct placed_module, 1 << 14),
		.labels = HASH_TABLE_OF(struct known_labels, 1 << 16),
		.contexts = HASH_TABLE_OF(struct known_labels, 1 << 14),
		.span_sites = HASH_TABLE_OF(struct known_span_site, SIZE_MAX), /* the host's code has few */
		.statement_sites = HASH_TABLE_OF(struct known_span_site, 1 << 14),
		.unkept_traces = HASH_TABLE_OF(struct hash, 1 << 16),
		.foreign_spans = HASH_TABLE_OF(struct hash, 1 << 16),
		.give_up = give_up,
		.context = context,
	};
	writer->samples = malloc(WRITER_BATCH * sizeof *writer->samples);
	if (!writer->samples) {
		writer_free(writer);
		return false;
	}
	writer_reset_identity(writer);
	return true;
}

static void free_span_site(void *context, void *entry)
{
	(void)context;
	free(((struct known_span_site *)entry)->record);
}

static void forget_span_site(void *context, void *entry)
{
	struct known_span_site *site = entry;

	(void)context;
	site->row = 0;
}

void writer_free(struct writer *writer)
{
	struct hash_table *tables[] = { &writer->threads,         &writer->series,
		                        &writer->stacks,          &writer->queries,
		                        &writer->earlier_queries, &writer->texts,
		                        &writer->libraries,       &writer->modules,
		                        &writer->labels,          &writer->contexts,
		                        &writer->span_sites,      &writer->statement_sites,
		                        &writer->unkept_traces,   &writer->foreign_spans };

	hash_table_each(&writer->span_sites, free_span_site, NULL);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		hash_table_free(tables[i]);
	vector_free(&writer->kept);
	vector_free(&writer->span_rows);
	vector_free(&writer->span_text);
	vector_free(&writer->span_children);
	free(writer->failure);
	writer->failure = NULL;
	free(writer->samples);
	vector_free(&writer->spans);
	writer->samples = NULL;
}

static void forget_thread_row(void *context, void *entry)
{
	struct known_thread *thread = entry;

	(void)context;
	thread->row = 0;
}

struct removed_stacks {
	int64_t epoch;
	size_t left;
};

static void forget_old_stack(void *context, void *entry)
{
	struct removed_stacks *removed = context;
	struct known_stack *stack = entry;

	if (stack->epoch < removed->epoch)
		stack->row = 0;
	removed->left += stack->row != 0;
}

struct queries_left {
	struct writer *writer;
	struct hash_table table;
	int64_t removed; /* up to this row, some */
};

/* One that cannot be kept is looked up again. */
static void keep_query(void *context, void *entry)
{
	struct queries_left *left = context;
	const struct known_query *known = entry;
	struct known_query *kept = NULL;

	if (known->row > left->removed ||
	    writer_ask_sql(left->writer, "SELECT 1 FROM queries WHERE id = ?1", known->row, 0))
		kept = hash_table_add(&left->table, known->key);
	if (kept)
		*kept = *known;
}

/* The memory of those that have gone goes, too: there are as many as a busy host has ever run. */
static void forget_queries(struct writer *writer, struct hash_table *queries, int64_t removed)
{
	struct queries_left left = { writer, HASH_TABLE_OF(struct known_query, SIZE_MAX), removed };

	hash_table_each(queries, keep_query, &left);
	hash_table_free(queries);
	*queries = left.table;
}

void writer_forget_before(struct writer *writer, int64_t epoch, int64_t query)
{
	struct hash_table *tables[] = { &writer->series, &writer->texts, &writer->labels, &writer->contexts };
	struct removed_stacks removed = { .epoch = epoch };

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		hash_table_clear(tables[i]);
	if (epoch) /* one has ended: sites go then only */
		hash_table_clear(&writer->statement_sites);
	forget_queries(writer, &writer->queries, query);
	forget_queries(writer, &writer->earlier_queries, query);
	hash_table_each(&writer->stacks, forget_old_stack, &removed);
	if (removed.left < writer->stacks.count / 2) /* not for stacks that do not come back */
		hash_table_clear(&writer->stacks);
	/* Names come once from the ring and are nowhere else. */
	hash_table_each(&writer->threads, forget_thread_row, NULL);
	writer->process = 0;
	writer->last.series = 0;
	writer->counted_statements = -1;
}

void writer_forget(struct writer *writer)
{
	hash_table_clear(&writer->queries);
	hash_table_clear(&writer->earlier_queries);
	writer_forget_before(writer, INT64_MAX, INT64_MAX);
	hash_table_clear(&writer->libraries);
	hash_table_clear(&writer->modules);
	hash_table_each(&writer->span_sites, forget_span_site, NULL);
	writer->removals = -1;
}

/* --- connection -------------------------------------------------------------------- */

#define CONTENDED_NS 1000000000

static int on_busy(void *context, int count)
{
	struct writer *writer = context;
	const struct database_limits limits = { .give_up = writer->give_up, .context = writer->context };

	writer->contended_until_ns = control_now_ns() + CONTENDED_NS;
	return contention_nap(&limits, count, CONTENTION_NAPS_MAX);
}

void writer_let_others(struct writer *writer)
{
	if (control_now_ns() < writer->contended_until_ns)
		contention_yield();
}

void writer_wait_when_busy(struct writer *writer)
{
	sqlite3_busy_handler(writer->database.db, on_busy, writer);
}

int writer_open(struct writer *writer, const char *path, const struct database_limits *limits, char **error)
{
	struct database_limits patient = *limits;
	int code;

	patient.give_up = writer->give_up;
	patient.context = writer->context;
	code = database_open(&writer->database, path, &patient, error);
	writer->path = path;
	if (code)
		return code;
	row_source_open(writer->database.db, &span_rows_source, writer); /* the statements fail without */
	row_source_open(writer->database.db, &sample_source, writer);
	writer_wait_when_busy(writer);
	return QP_OK;
}

void writer_close(struct writer *writer, bool last)
{
	for (int i = 0; i < WRITE_STATEMENTS; i++)
		sqlite3_finalize(writer->statements[i]);
	for (size_t i = 0; i < writer->kept.count; i++)
		sqlite3_finalize(writer->kept.items[i].statement);
	writer_leave_statements(writer);
	database_close(&writer->database, last);
}

int writer_sync(struct writer *writer)
{
	sqlite3_file *log = NULL; /* the write-ahead log, which has what was stored since it began */

	if (sqlite3_file_control(writer->database.db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) || !log ||
	    !log->pMethods)
		return SQLITE_OK;
	return log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}
