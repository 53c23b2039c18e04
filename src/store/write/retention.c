/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit covers the file and its log. Removing starts at an upper mark and continues to a lower
 * one, so that it is rare: each removal makes every other writer forget the rows it knows, and its
 * own writer all except the remaining stacks. Free pages are reused; the file shrinks only after the
 * limit was lowered.
 *
 * A step removes, in one transaction, everything older than some time: first samples, then the
 * stacks, series and threads that no sample needs any more, then queries. Epochs show whether a stack
 * is needed. When epoch e begins, everything stored so far is older than its start. So once all
 * samples before that start are removed, a stack that was last used in an epoch before e has none
 * left.
 *
 * Names of addresses remain, because their number depends on the code, not on the samples. If even
 * they exceed the limit, they are removed when nothing else is left, and so are the counters of the
 * least used statements.
 */
#include "store/write/retention.h"

#include "store/control/control.h"
#include "store/write/labels.h"
#include "store/write/lifecycle.h"
#include "store/write/bytecode.h"
#include "store/write/span_sites.h"
#include "store/write/spans.h"
#include "store/write/statements.h"

#define WAL_MAX_BYTES (16 << 20)
#define STEP_MAX 8192 /* rows per transaction */
#define STEP_MIN 256
#define QUERY_ROW_BYTES 1024 /* with its text and indexes */
#define ROWS_FEW 16
#define ROW_BYTES 32 /* of a sample, approximately */
#define TIME_LIMIT_NS 30000000
#define PROCESSES_KEPT 64
#define CALL_STACKS_KEPT 256
#define EPOCHS_MAX 128 /* usually about 30 */

static int64_t effective(int64_t max_bytes)
{
	return max_bytes < RETENTION_MIN_BYTES ? RETENTION_MIN_BYTES : max_bytes;
}

int64_t retention_wal_bytes(int64_t max_bytes)
{
	int64_t part;

	if (max_bytes <= 0)
		return WAL_MAX_BYTES;
	part = effective(max_bytes) / 8;
	return part < WAL_MAX_BYTES ? part : WAL_MAX_BYTES;
}

size_t retention_batch_bytes(int64_t max_bytes)
{
	return (size_t)retention_wal_bytes(max_bytes) / 4;
}

static int64_t slice(int64_t max_bytes)
{
	return effective(max_bytes) / 32;
}

static int64_t upper_mark(int64_t max_bytes)
{
	return effective(max_bytes) - retention_wal_bytes(max_bytes) - slice(max_bytes);
}

static int64_t pages_bytes(struct writer *writer, int64_t pages)
{
	return pages * writer_ask_sql(writer, "PRAGMA page_size", 0, 0);
}

static int64_t file_pages(struct writer *writer)
{
	return writer_ask_sql(writer, "PRAGMA page_count", 0, 0);
}

static int64_t free_pages(struct writer *writer)
{
	return writer_ask_sql(writer, "PRAGMA freelist_count", 0, 0);
}

int64_t retention_free_bytes(struct writer *writer)
{
	return pages_bytes(writer, free_pages(writer));
}

static int64_t used_bytes(struct writer *writer)
{
	return pages_bytes(writer, file_pages(writer) - free_pages(writer));
}

static int run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int begin_epoch(struct writer *writer)
{
	int code = writer_run(writer, &writer->sql.begin);

	if (code)
		return code;
	code = writer_run(writer, &writer->sql.begin_epoch);
	code = writer_end(writer, code);
	if (!code)
		writer->epoch_bytes = 0;
	return code;
}

/* The rows that a step removes: all before `time_ns`; of queries only up to row `query`. */
struct cut {
	int64_t time_ns, query;
	int64_t span_bytes; /* of spans at most, approximately */
	bool last;          /* almost no samples remain, so all are removed */
	bool more_spans;
	int64_t epoch; /* all removed stacks belonged to earlier epochs */
};

/* The value of the row at offset `rows`, or of a nearer one if there are not that many. */
static int64_t ask_near(struct writer *writer, const char *sql, int64_t rows)
{
	int64_t value = writer_ask_sql(writer, sql, rows, INT64_MAX);

	for (; value == INT64_MAX && rows > ROWS_FEW; rows /= 4)
		value = writer_ask_sql(writer, sql, rows / 4, INT64_MAX);
	return value;
}

/* samples, queries: how many rows of each may be removed. */
static struct cut choose_cut(struct writer *writer, int64_t samples, int64_t queries)
{
	struct cut cut = { .epoch = 0 };
	int64_t time_ns;

	cut.time_ns = ask_near(
		writer, "SELECT timestamp_ns FROM samples ORDER BY timestamp_ns LIMIT 1 OFFSET ?1", samples);
	cut.last = cut.time_ns == INT64_MAX;
	/* One epoch at a time, because removing all its stacks writes them to the log. */
	time_ns = writer_ask_sql(writer, "SELECT start_ns FROM epochs ORDER BY id LIMIT 1 OFFSET 1", 0,
	                         INT64_MAX);
	if (time_ns < cut.time_ns)
		cut.time_ns = time_ns;
	cut.query = ask_near(writer, "SELECT id FROM queries WHERE id > 0 ORDER BY id LIMIT 1 OFFSET ?1",
	                     queries);
	if (cut.query != INT64_MAX) {
		/* The numbers of queries follow time closely enough, except for unfinished ones.
		 * At least half of these rows are removed, whatever their times, so each step
		 * removes something. */
		time_ns = writer_ask_sql(
			writer,
			"SELECT last_ns FROM queries WHERE id BETWEEN 1 AND ?1 ORDER BY last_ns LIMIT 1"
			" OFFSET (SELECT count(*) / 2 FROM queries WHERE id BETWEEN 1 AND ?1)",
			cut.query, INT64_MAX);
		if (time_ns < cut.time_ns)
			cut.time_ns = time_ns + 1;
	}
	return cut;
}

static int remove_unused_rows(struct writer *writer, int64_t epoch)
{
	int code = writer_run_sql(writer, "DELETE FROM stacks WHERE epoch < ?1", epoch, 0);

	if (!code)
		code = writer_run_sql(writer, "DELETE FROM series WHERE epoch < ?1", epoch, 0);
	/* SQLite searches the tables of spans only for threads without a series. */
	if (!code)
		code = writer_run_sql(writer,
		                      "DELETE FROM threads WHERE id NOT IN (SELECT thread FROM series)"
		                      " AND id < (SELECT max(id) FROM threads)"
		                      " AND id NOT IN (SELECT thread FROM span_batches)"
		                      " AND id NOT IN (SELECT thread FROM span_waits)",
		                      0, 0);
	/* Searches all queries, so it waits until the gain is worth it. */
	if (!code && writer_ask_sql(writer, "SELECT count(*) FROM processes", 0, 0) > PROCESSES_KEPT)
		code = writer_run_sql(writer,
		                      "DELETE FROM processes WHERE id NOT IN (SELECT process FROM threads)"
		                      " AND id NOT IN (SELECT process FROM queries)"
		                      " AND id NOT IN (SELECT process FROM losses)"
		                      " AND id NOT IN (SELECT process FROM label_uses)"
		                      " AND id NOT IN (SELECT process FROM waits_for_locks)"
		                      " AND id NOT IN (SELECT process FROM transactions)"
		                      " AND id NOT IN (SELECT process FROM open_statement_counts)"
		                      " AND id NOT IN (SELECT process FROM connection_counts)"
		                      " AND id NOT IN (SELECT process FROM page_sums)"
		                      " AND id NOT IN (SELECT process FROM wal_events)"
		                      " AND id NOT IN (SELECT process FROM wal_checkpoints)",
		                      0, 0);
	/* Searches all queries and samples, so it waits, too. */
	if (!code && writer_ask_sql(writer, "SELECT count(*) FROM call_stacks", 0, 0) > CALL_STACKS_KEPT)
		code = writer_run_sql(
			writer,
			"DELETE FROM call_stacks WHERE id NOT IN (SELECT call_stack FROM queries)"
			" AND id NOT IN (SELECT call_stack FROM samples)",
			0, 0);
	if (!code)
		code = span_sites_remove(writer);
	return code ? code : bytecode_remove_unused(writer);
}

/* ?1, ?2: the cut. For nearly all texts, the index alone shows that a newer query has the text. */
static int remove_queries(struct writer *writer, const struct cut *cut)
{
	int code = writer_run_sql(
		writer,
		"DELETE FROM statements WHERE id IN (SELECT statement FROM queries WHERE id > 0 AND id <= ?1"
		" AND last_ns < ?2) AND iif(EXISTS (SELECT 1 FROM queries AS q WHERE q.statement = "
		"statements.id"
		" AND q.id > ?1), 0, NOT EXISTS (SELECT 1 FROM queries AS q WHERE q.statement = statements.id"
		" AND q.id <= ?1 AND q.last_ns >= ?2)"
		" AND id NOT IN (SELECT statement FROM statement_counters))",
		cut->query, cut->time_ns);

	return code ? code
	            : writer_run_sql(writer, "DELETE FROM queries WHERE id > 0 AND id <= ?1 AND last_ns < ?2",
	                             cut->query, cut->time_ns);
}

/* For a table without an index on its time, whose rows are nearly in order: scanning all of them
 * at each step would take longer than the removal. The newest row remains, because the next one
 * gets the number after it. */
#define DELETE_OLDEST(table, time)                                                                           \
	"DELETE FROM " table " WHERE id IN (SELECT id FROM (SELECT id, " time " AS time FROM " table         \
	" ORDER BY id LIMIT 8192) WHERE time < ?1) AND id < (SELECT max(id) FROM " table ")"

/* Here too, the newest row remains. */
#define DELETE_BATCHES                                                                                       \
	"DELETE FROM batches WHERE id < coalesce((SELECT id FROM batches WHERE last_ns >= ?1"                \
	" ORDER BY id LIMIT 1), (SELECT max(id) FROM batches))"

/* From tables with a time of their own, except queries. */
static int remove_times(struct writer *writer, struct cut *cut, uint64_t *removed)
{
	static const char *const sql[] = {
		"DELETE FROM late_samples WHERE timestamp_ns < ?1",
		DELETE_OLDEST("waits_for_locks", "start_ns"),
		DELETE_OLDEST("transactions", "start_ns + duration_ns"),
		DELETE_OLDEST("wal_events", "start_ns + duration_ns"),
		DELETE_OLDEST("wal_checkpoints", "start_ns + duration_ns"),
		DELETE_OLDEST("open_statement_counts", "timestamp_ns"),
		DELETE_OLDEST("connection_counts", "timestamp_ns"),
		DELETE_OLDEST("page_sums", "start_ns"),
		DELETE_BATCHES,
	};
	int code = writer_run_sql(writer, "DELETE FROM samples WHERE timestamp_ns < ?1", cut->time_ns, 0);

	if (code)
		return code;
	*removed = (uint64_t)sqlite3_changes64(writer->database.db);
	code = spans_remove(writer, cut->time_ns, cut->span_bytes, &cut->more_spans);
	for (size_t i = 0; !code && i < sizeof(sql) / sizeof(*sql); i++)
		code = writer_run_sql(writer, sql[i], cut->time_ns, 0);
	return code;
}

/* The file contains almost only stacks, or epochs do not end because a clock was far ahead: checks the stacks
 * one by one. *ended: an epoch has ended. */
static int remove_all_epochs(struct writer *writer, struct cut *cut, bool *ended)
{
	sqlite3 *db = writer->database.db;
	int code = run(db, "DELETE FROM stacks WHERE id NOT IN (SELECT stack FROM samples)");

	cut->epoch = INT64_MAX;
	if (!code)
		code = run(db, "DELETE FROM epochs WHERE id < (SELECT max(id) FROM epochs)");
	*ended = !code && sqlite3_changes64(db) > 0;
	return code ? code : labels_remove(writer, 0, cut->time_ns, true);
}

static int remove_epochs(struct writer *writer, struct cut *cut)
{
	bool ended = false;
	int64_t epoch;
	int code = SQLITE_OK;

	if (cut->last || writer_ask_sql(writer, "SELECT count(*) FROM epochs", 0, 0) > EPOCHS_MAX)
		code = remove_all_epochs(writer, cut, &ended);
	if (code)
		return code;
	epoch = writer_ask_sql(writer, "SELECT coalesce(max(id), 0) FROM epochs WHERE start_ns <= ?1",
	                       cut->time_ns, INT64_MAX);
	code = writer_run_sql(writer, "DELETE FROM epochs WHERE id < ?1", epoch, 0);
	if (code || sqlite3_changes64(writer->database.db) == 0)
		return code || !ended ? code : remove_unused_rows(writer, 0);
	if (cut->epoch < epoch)
		cut->epoch = epoch;
	code = remove_unused_rows(writer, epoch);
	return code ? code : labels_remove(writer, epoch, cut->time_ns, false);
}

static int remove_before(struct writer *writer, struct cut *cut, uint64_t *removed)
{
	int code = remove_times(writer, cut, removed);

	if (!code)
		code = remove_epochs(writer, cut);
	return code ? code : remove_queries(writer, cut);
}

/* Inside a transaction. *any: something was removed, and writers forget the rows they know. */
static int remove_rows(struct writer *writer, struct cut *cut, bool *any, uint64_t *removed)
{
	const int64_t changes = sqlite3_total_changes64(writer->database.db);
	int code = remove_before(writer, cut, removed);

	*any = sqlite3_total_changes64(writer->database.db) != changes;
	if (code || !*any)
		return code;
	return writer_run_sql(writer, "UPDATE state SET removals = removals + 1", 0, 0);
}

/* Removes about `bytes`, but at most as much as a transaction may write to the log. *last: nothing more can
 * be removed. */
static int remove_step(struct writer *writer, int64_t bytes, int64_t max_bytes, bool *last, uint64_t *trimmed)
{
	int64_t most = retention_wal_bytes(max_bytes) / 8;
	int64_t samples = (bytes < most ? bytes : most) / ROW_BYTES;
	int64_t queries = most / QUERY_ROW_BYTES;
	uint64_t removed = 0;
	int64_t removals;
	struct cut cut;
	bool any, is_alone;
	int code = writer_run(writer, &writer->sql.begin);

	if (code)
		return code;
	removals = writer_ask_sql(writer, "SELECT removals FROM state", 0, -2);
	if (samples > STEP_MAX)
		samples = STEP_MAX;
	if (samples < STEP_MIN)
		samples = STEP_MIN;
	cut = choose_cut(writer, samples, queries < STEP_MAX ? queries : STEP_MAX);
	cut.span_bytes = bytes < most ? bytes : most;
	code = remove_rows(writer, &cut, &any, &removed);
	is_alone = any && removals == writer->removals; /* otherwise another process has also removed rows */
	if (!code && is_alone)
		writer_forget_before(writer, cut.epoch, cut.query);
	code = writer_end(writer, code);
	if (code) {
		writer_forget(writer);
		return code;
	}
	*last = !any || (cut.last && cut.query == INT64_MAX && !cut.more_spans);
	*trimmed += removed;
	writer->removals += is_alone;
	return SQLITE_OK;
}

/* Returns pages if the file exceeds the limit although little of it is used. */
static int shrink(struct writer *writer, int64_t max_bytes)
{
	if (pages_bytes(writer, file_pages(writer)) <= upper_mark(max_bytes) + slice(max_bytes))
		return SQLITE_OK;
	return run(writer->database.db, "PRAGMA incremental_vacuum(1000)");
}

/* Names can be looked up again (src/frames/embed.h). Their space is returned immediately, because this
 * function is not called again while nothing fits. */
static int remove_names(struct writer *writer)
{
	sqlite3 *db = writer->database.db;
	int code = run(db, "BEGIN IMMEDIATE; DELETE FROM frames; DELETE FROM names; COMMIT");

	if (code)
		writer_roll_back(writer);
	return code ? code : run(db, "PRAGMA incremental_vacuum");
}

/* The least used half of the statements becomes "(other)". */
static int halve_statements(struct writer *writer)
{
	int code = writer_run(writer, &writer->sql.begin);

	if (code)
		return code;
	code = writer_end(writer, statements_fold(writer, (statements_count(writer) + 1) / 2));
	if (code)
		writer_forget(writer); /* it has the row of "(other)" */
	return code;
}

int retention_apply(struct retention *retention, struct writer *writer, int64_t max_bytes,
                    bool (*is_interrupted)(void), uint64_t *trimmed)
{
	int64_t deadline, used, lower = upper_mark(max_bytes) - slice(max_bytes);
	int code = SQLITE_OK;

	if (max_bytes <= 0)
		return SQLITE_OK;
	if (writer->epoch_bytes > slice(max_bytes))
		code = begin_epoch(writer);
	used = used_bytes(writer);
	/* After the limit was raised, it may be far away, and no older row is removed. */
	retention->trimming = used > upper_mark(max_bytes) || (retention->trimming && used > lower);
	deadline = control_now_ns() + TIME_LIMIT_NS;
	/* Always below the upper mark, or the next batch would exceed the limit. */
	while (!code && retention->trimming && !is_interrupted() &&
	       (used > upper_mark(max_bytes) || control_now_ns() < deadline)) {
		bool last = false;

		/* Samples also have queries and stacks; counting all of them would remove too much. */
		code = remove_step(writer, (used - lower) / 4 * 3, max_bytes, &last, trimmed);
		if (!code && last && used_bytes(writer) > lower)
			code = remove_names(writer);
		if (!code && last && used_bytes(writer) > lower)
			code = halve_statements(writer);
		used = used_bytes(writer);
		retention->trimming = used > lower && !last;
	}
	return code ? code : shrink(writer, max_bytes);
}
