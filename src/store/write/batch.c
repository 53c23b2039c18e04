/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One transaction per batch. The flusher decodes and interns records while it reads the ring. At the
 * end it writes the samples' own rows ordered by time, which is the order of their table. On any
 * error it rolls the batch back, counts it as lost, and forgets all rows that it knew. The ring keeps
 * the records until then, so they survive if the process is killed meanwhile (store/collector.h).
 */
#include "store/write/batch.h"

#include <stddef.h>

#include "collect/ring_reader.h"
#include "query/statement_stats.h"
#include "store/control/counters.h"
#include "store/write/labels.h"
#include "store/write/checkpoints.h"
#include "store/write/lock_waits.h"
#include "store/write/losses.h"
#include "store/write/lifecycle.h"
#include "store/write/connections.h"
#include "store/write/page_sums.h"
#include "store/write/bytecode.h"
#include "store/write/queries.h"
#include "store/write/query_rows.h"
#include "store/write/sample_rows.h"
#include "store/write/span_rows.h"
#include "store/write/span_sites.h"
#include "store/write/spans.h"
#include "store/write/statements.h"
#include "store/write/threads.h"
#include "wire/label_record.h"
#include "wire/lock_record.h"
#include "wire/connection_record.h"
#include "wire/open_statements_record.h"
#include "wire/query_record.h"
#include "wire/span_record.h"
#include "wire/statement_memory.h"
#include "wire/thread_record.h"
#include "wire/transaction_record.h"
#include "wire/wal_record.h"

/* --- records ---------------------------------------------------------------------- */

/* Room in a batch for the samples of a query's delays. */
static bool is_full(const struct writer *writer)
{
	return writer->samples->count + DELAYS > WRITER_BATCH;
}

/* Makes its row immediately, because its name cannot be determined after the process has ended. */
static int store_thread(struct writer *writer, const struct thread_record *record)
{
	int64_t row;

	intern_thread_name(writer, record);
	row = intern_thread(writer, record->thread_id);
	return row < 0 ? (int)-row : SQLITE_OK;
}

#define WITHOUT_TEXTS(type)                                                                                  \
	{                                                                                                    \
		.bytes = sizeof(struct type)                                                                 \
	}
#define WITH_TEXTS(type, first, last)                                                                        \
	{                                                                                                    \
		sizeof(struct type), offsetof(struct type, first),                                           \
			(offsetof(struct type, last) - offsetof(struct type, first)) / sizeof(uint32_t) + 1  \
	}

/* The fixed part of each record, and the sizes of its texts, which follow it. The optional parts of samples
 * and spans are checked when they are read. */
static const struct {
	size_t bytes, sizes_at, sizes;
} layouts[] = {
	[RECORD_SAMPLE] = WITHOUT_TEXTS(sample_record),
	[RECORD_QUERY] = WITH_TEXTS(query_record, query_id_size, expanded_size),
	[RECORD_THREAD] = WITHOUT_TEXTS(thread_record),
	[RECORD_START] = WITH_TEXTS(start_record, text_size, text_size),
	[RECORD_LOCK_WAIT] = WITH_TEXTS(lock_wait_record, database_size, first_size),
	[RECORD_TRANSACTION] = WITH_TEXTS(transaction_record, database_size, last_size),
	[RECORD_LABELS] = WITH_TEXTS(label_record, size, size),
	[RECORD_SPANS] = WITHOUT_TEXTS(span_batch),
	[RECORD_SPAN_SITE] = WITH_TEXTS(span_site_record, name_size, function_size),
	[RECORD_BYTECODE] = WITH_TEXTS(bytecode_record, query_size, plan_size),
	[RECORD_BYTECODE_ROWS] = WITH_TEXTS(bytecode_rows_record, size, size),
	[RECORD_WAL] = WITH_TEXTS(wal_record, database_size, query_size),
	[RECORD_CHECKPOINT] = WITH_TEXTS(checkpoint_record, database_size, holder_size),
	[RECORD_OPEN_STATEMENTS] = WITH_TEXTS(open_statements_record, database_size, query_size),
	[RECORD_CONNECTION] = WITH_TEXTS(connection_record, database_size, database_size),
	[RECORD_PAGE_IO] = WITH_TEXTS(page_record, database_size, table_size),
};

/* False: no thread under queryprof wrote it. */
static bool is_whole(unsigned kind, const void *record, size_t size)
{
	uint64_t texts = 0;

	if (kind >= sizeof(layouts) / sizeof(layouts[0]) || size < layouts[kind].bytes)
		return false;
	const uint32_t *sizes = (const void *)((const char *)record + layouts[kind].sizes_at);
	for (size_t i = 0; i < layouts[kind].sizes; i++)
		texts += sizes[i];
	return texts <= size - layouts[kind].bytes;
}

static int store_record(struct writer *writer, unsigned kind, const void *record, size_t size)
{
	if (!is_whole(kind, record, size))
		return SQLITE_OK;
	switch (kind) {
	case RECORD_SAMPLE: return sample_rows_add(writer, record, size);
	case RECORD_QUERY: return query_rows_add(writer, record);
	case RECORD_START: return query_rows_add_start(writer, record);
	case RECORD_THREAD: return store_thread(writer, record);
	case RECORD_LABELS: return labels_add(writer, record);
	case RECORD_SPANS: return spans_add(writer, record, size);
	case RECORD_SPAN_SITE: span_sites_add(writer, record, size); return SQLITE_OK;
	case RECORD_BYTECODE: return bytecode_add(writer, record);
	case RECORD_BYTECODE_ROWS: return bytecode_add_rows(writer, record);
	case RECORD_TRANSACTION: return transactions_add(writer, record, size);
	case RECORD_LOCK_WAIT: return lock_waits_add(writer, record, size);
	case RECORD_WAL: return wal_events_add(writer, record, size);
	case RECORD_CHECKPOINT: return checkpoints_add(writer, record, size);
	case RECORD_OPEN_STATEMENTS: return open_statements_add(writer, record, size);
	case RECORD_CONNECTION: return connections_add(writer, record);
	case RECORD_PAGE_IO: return page_sums_add(writer, record);
	default: return SQLITE_OK;
	}
}

/* Rows that the batch counts when it writes them. */
static bool is_counted(unsigned kind)
{
	return kind == RECORD_SAMPLE || kind == RECORD_QUERY;
}

/* Not a reading of a connection's counters, because the next one includes it. */
static bool is_row(unsigned kind)
{
	return is_counted(kind) || kind == RECORD_LOCK_WAIT || kind == RECORD_TRANSACTION ||
	       kind == RECORD_WAL || kind == RECORD_CHECKPOINT || kind == RECORD_OPEN_STATEMENTS ||
	       kind == RECORD_PAGE_IO;
}

uint64_t writer_rows_in(unsigned kind, const void *record, size_t size)
{
	if (kind == RECORD_SPANS && is_whole(kind, record, size))
		return spans_in(record, size);
	return is_row(kind);
}

bool writer_is_plan(unsigned kind)
{
	return kind == RECORD_BYTECODE || kind == RECORD_BYTECODE_ROWS;
}

void writer_discard(struct writer *writer, unsigned kind, const void *record, size_t size)
{
	if (!is_whole(kind, record, size))
		return;
	if (kind == RECORD_THREAD)
		intern_thread_name(writer, record);
	else if (kind == RECORD_SPAN_SITE)
		span_sites_add(writer, record, size);
	else if (kind == RECORD_LABELS)
		labels_remember(writer, record);
}

/* --- the batch's own rows --------------------------------------------------------- */

static int write_batch(struct writer *writer)
{
	const struct sample_writer *samples = writer->samples;
	struct prepared *add = writer_bind(writer, &writer->sql.add_batch);

	bind_number(add, "id", writer->stored_batch);
	bind_number(add, "process", writer->threads->process);
	bind_number(add, "before_ns", samples->process_newest);
	bind_number(add, "first_ns", samples->first);
	bind_number(add, "last_ns", samples->last);
	bind_number(add, "samples", (int64_t)samples->count);
	return writer_run(writer, add);
}

/* --- the transaction ------------------------------------------------------------------ */

static void begin_parts(struct writer *writer)
{
	sample_writer_clear(writer->samples);
	writer->bytes = writer->rewritten = writer->spans->stored = 0;
	span_rows_clear(writer);
	queries_begin_batch(writer->queries);
	writer->batch++;
}

static void read_state(struct writer *writer, sqlite3_stmt *state)
{
	int64_t removals = sqlite3_column_int64(state, 0), identity = sqlite3_column_int64(state, 2);
	int64_t bytecode_removals = sqlite3_column_int64(state, 6);

	/* A flusher's own process already knows of another file. */
	if (identity == writer->file_identity ? bytecode_removals != writer->bytecode_removals
	                                      : writer->other && writer->file_identity)
		store_count(STORE_PLANS_REMOVED, 1);
	writer->bytecode_removals = bytecode_removals;
	if (removals != writer->removals || identity != writer->file_identity) {
		writer_forget(writer);
		writer->removals = removals;
		writer->file_identity = identity;
	}
	if (writer->epoch != sqlite3_column_int64(state, 1)) {
		writer->epoch = sqlite3_column_int64(state, 1);
		writer->epoch_bytes = 0;
		writer->threads->last.series = 0; /* so that it is marked as used in the new epoch */
	}
	writer->stored_batch = sqlite3_column_int64(state, 3) + 1;
	writer->queries->newest = sqlite3_column_int64(state, 4);
	writer->counters->batch = sqlite3_column_int64(state, 5) + 1;
	writer->counters->is_announced = false;
}

/* Begins a transaction, and forgets rows that the file may have changed since the last one; the
 * caller ends it. SQLITE_OK or the error, after which there is no transaction. */
static int writer_begin(struct writer *writer)
{
	struct prepared *state = &writer->sql.state;
	int code = writer_run(writer, &writer->sql.begin);

	if (code) {
		writer_roll_back(writer);
		return code;
	}
	code = writer_step(writer, state);
	if (code == SQLITE_ROW)
		read_state(writer, state->statement);
	sqlite3_reset(state->statement);
	if (code != SQLITE_ROW) {
		writer_roll_back(writer);
		return code == SQLITE_DONE ? SQLITE_CORRUPT : code;
	}
	begin_parts(writer);
	return SQLITE_OK;
}

/* has_rows: counters alone have a separate number, because they are nothing new for followers of the file. */
static int finish(struct writer *writer, bool has_rows)
{
	const int64_t process = has_rows ? intern_process(writer) : 0;
	int code = process < 0 ? (int)-process : sample_rows_insert(writer);

	if (!code)
		code = span_rows_write(writer);
	if (!code)
		code = query_rows_write(writer);
	if (!code && has_rows)
		code = write_batch(writer);
	if (!code)
		code = statements_write(writer);
	if (!code)
		code = writer_run(writer, &writer->sql.commit);
	return code;
}

/* Records that a batch takes from the ring keep their space until the batch is stored. */
#define RING_SHARE 4

int writer_store(struct writer *writer, struct ring *ring, size_t most_records, size_t most_bytes,
                 struct writer_result *result)
{
	size_t wanted = 0, rows = 0, spans = 0, plans = 0; /* requested: those of the counted rows */
	void *record;
	unsigned kind;
	size_t size;
	int code;

	*result = (struct writer_result){ .records = 0 };
	if (!ring_peek(ring, &kind, &size))
		return SQLITE_OK;
	code = writer_begin(writer);
	if (code) {
		result->busy = (code & 0xff) == SQLITE_BUSY;
		return code;
	}
	if (most_records > WRITER_BATCH)
		most_records = WRITER_BATCH;
	while (!code && (record = ring_peek(ring, &kind, &size))) {
		if (result->records >= most_records || is_full(writer) ||
		    writer->bytes + writer->rewritten >= most_bytes ||
		    ring_passed(ring) >= ring_bytes(ring) / RING_SHARE) {
			result->more = true;
			break;
		}
		code = store_record(writer, kind, record, size);
		wanted += is_counted(kind);
		rows += is_row(kind);
		spans += kind == RECORD_SPANS;
		plans += writer_is_plan(kind);
		ring_pass(ring);
		result->records++;
	}
	if (!code)
		code = finish(writer, writer->queries->in_batch.count || rows || spans);
	statement_stats_commit(!code);
	ring_release(ring);
	if (code) {
		writer_roll_back(writer);
		writer_forget(writer);
		result->spans_lost = writer->spans->stored;
		result->lost = rows + result->spans_lost;
		result->plans_lost = plans;
		return code;
	}
	result->samples = writer->samples->count - writer->samples->delay_count;
	result->queries = writer->queries->ended;
	result->spans = writer->spans->stored;
	result->fields_skipped = writer->samples->fields_skipped;
	result->lost = wanted - result->samples - result->queries;
	writer->epoch_bytes += (int64_t)writer->bytes;
	return SQLITE_OK;
}

int writer_store_statements(struct writer *writer, const void *memory, size_t size,
                            struct statement_reading *reading)
{
	int code = writer_begin(writer);

	if (code)
		return code;
	code = writer_end(writer, statements_write_other(writer, memory, size, reading));
	statement_reading_commit(reading, !code);
	if (code)
		writer_forget(writer);
	return code;
}

int writer_store_losses(struct writer *writer, struct losses *losses)
{
	int code;

	if (!losses_are_pending(losses))
		return SQLITE_OK;
	code = writer_begin(writer);
	if (code)
		return code;
	code = writer_end(writer, losses_write(losses, writer));
	if (code)
		writer_forget(writer);
	else
		losses_stored(losses);
	return code;
}
