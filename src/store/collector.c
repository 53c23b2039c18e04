/* SPDX-License-Identifier: Apache-2.0 */
#include "store/collector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "collect/open_runs.h"
#include "collect/open_waits.h"
#include "collect/ring_reader.h"
#include "collect/ring_remains.h"
#include "collect/transaction_states.h"
#include "handler/ring.h"
#include "modules/module_log.h"
#include "queryprof.h"
#include "span/chunk_pool.h"
#include "store/control/control.h"
#include "store/control/counters.h"
#include "handover/shared_ring.h"
#include "store/write/batch.h"
#include "store/write/lifecycle.h"
#include "store/write/retention.h"
#include "wire/lock_record.h"
#include "wire/statement_memory.h"

#define NS_PER_MS 1000000ll

/* Another process has locked the file. After a gap of this length, the lock is a new one. */
#define LOCKED_GAP_NS (2000 * NS_PER_MS)

/* The ring has space, so other threads need not wait for processes that run. */
#define RUNNING_PATIENCE_NS (200 * NS_PER_MS)

/* How often the counters of statements and the open runs are read. If reading takes long, it is done less
 * often. */
#define COUNTERS_INTERVAL_NS (1000 * NS_PER_MS)
#define COUNTERS_SHARE 50

/* A process that has been idle for this long needs no connection. */
#define IDLE_NS (10000 * NS_PER_MS)

struct recorded {
	int fd;
	bool is_open; /* of `shared` and `other` */
	struct shared_ring shared;
	struct writer_other other;
	struct writer writer; /* with memory if has_writer; its file may be closed */
	bool has_writer;
	struct retention retention;
	struct statement_reading statements;
	struct losses losses;
	struct refusals refusals; /* that are noted already */
	int64_t counters_at_ns;   /* when statements and open runs are read next */
	int64_t records_at_ns;    /* when records were stored last */
	int64_t stored_at_ns;     /* when something was stored last */
	bool is_ending, is_left;  /* is_left: at the end the process continues, and is no longer recorded */
	struct collection *to;    /* during a call */
};

/* The new content of the ring. False: there is none, or none yet. */
static bool open_ring(struct recorded *recorded)
{
	if (!recorded->is_open && !shared_ring_open(&recorded->shared, recorded->fd))
		return false;
	if (!recorded->is_open)
		recorded->other = (struct writer_other){ .log = recorded->shared.modules,
			                                 .log_size = recorded->shared.modules_size,
			                                 .runs = recorded->shared.runs };
	recorded->is_open = true;
	return shared_ring_refresh(&recorded->shared);
}

/* --- the file -------------------------------------------------------------------------- */

static int64_t patience(const struct recorded *recorded)
{
	if (!recorded->is_ending)
		return RUNNING_PATIENCE_NS;
	return recorded->to->is_alone ? COLLECTOR_PATIENCE_ALONE_NS : COLLECTOR_PATIENCE_NS;
}

static bool give_up(void *context)
{
	struct recorded *recorded = context;
	struct collection *to = recorded->to;
	int64_t now = control_now_ns();

	if (!to->locked_since_ns || now - to->locked_until_ns > LOCKED_GAP_NS)
		to->locked_since_ns = now;
	to->locked_until_ns = now;
	return now - to->locked_since_ns >= patience(recorded);
}

static bool never(void)
{
	return false;
}

static bool make_writer(struct recorded *recorded)
{
	struct writer *writer = &recorded->writer;

	if (recorded->has_writer || !writer_init(writer, give_up, recorded))
		return recorded->has_writer;
	writer->identity = recorded->shared.identity;
	writer->other = &recorded->other;
	recorded->has_writer = true;
	return true;
}

void recorded_rest(struct recorded *recorded)
{
	if (recorded->has_writer && recorded->writer.database.db)
		writer_close(&recorded->writer, false);
}

/* Keeps the connection for the next process that has something to store. */
static void keep_file(struct recorded *recorded)
{
	struct collection *to = recorded->to;
	struct writer *writer = &recorded->writer;

	if (to->keeps_file && !to->kept.db && recorded->has_writer && writer->database.db &&
	    sqlite3_get_autocommit(writer->database.db))
		to->kept = writer_detach(writer);
}

sqlite3 *collection_kept(struct collection *collection)
{
	if (collection->kept.db && !guard_is_at(&collection->kept.guard, collection->file.path))
		database_close(&collection->kept, false);
	return collection->kept.db;
}

static bool adopt_kept(struct writer *writer, struct collection *to)
{
	if (!collection_kept(to))
		return false;
	writer_adopt(writer, to->file.path, to->kept);
	to->kept = DATABASE_CLOSED;
	return true;
}

/* Opens the file if its path does not name the open one. QP_OK, DATABASE_LOCKED, or an error. */
static int open_file(struct recorded *recorded, char **error)
{
	const struct database_limits limits = { .wal_bytes =
		                                        retention_wal_bytes(recorded->to->file.max_bytes) };
	struct writer *writer = &recorded->writer;
	const char *path = recorded->to->file.path;
	int code;

	if (!make_writer(recorded)) {
		*error = text_format("out of memory for the records of a process");
		return QP_NOMEM;
	}
	if (writer->database.db && guard_is_at(&writer->database.guard, path))
		return QP_OK;
	recorded_rest(recorded);
	if (adopt_kept(writer, recorded->to))
		return QP_OK;
	code = writer_open(writer, path, &limits, error);
	while (code == DATABASE_LOCKED && !give_up(recorded)) {
		free(*error);
		*error = NULL;
		code = writer_open(writer, path, &limits, error);
	}
	return code;
}

/* --- records ---------------------------------------------------------------------------- */

/* Stores records until none is left, or a batch cannot be stored. */
static int store_records(struct recorded *recorded, uint64_t *lost)
{
	struct shared_ring *shared = &recorded->shared;
	struct collection *to = recorded->to;
	struct writer *writer = &recorded->writer;
	struct writer_result result = { .more = true };
	uint64_t trimmed = 0;
	int code = SQLITE_OK;

	while (!code && result.more) {
		code = writer_store(writer, shared->ring, WRITER_BATCH,
		                    retention_batch_bytes(to->file.max_bytes), &result);
		shared_ring_free(shared);
		to->samples += result.samples;
		to->queries += result.queries;
		*lost += result.lost;
		store_count(STORE_PLANS_LOST, result.plans_lost);
		if (!code) {
			to->locked_since_ns = 0;
			to->file.is_unsynced |= result.records != 0;
			code = retention_apply(&recorded->retention, writer, to->file.max_bytes, never,
			                       &trimmed);
		} else if (result.busy && !give_up(recorded)) {
			code = SQLITE_OK;
			result.more = true;
		}
	}
	return code;
}

/* Discards what is left, if the file is not available. Remembers what other records need. */
static uint64_t discard_records(struct recorded *recorded)
{
	struct shared_ring *shared = &recorded->shared;
	uint64_t count = 0;
	const void *record;
	unsigned kind;
	size_t size;

	for (; (record = ring_peek(shared->ring, &kind, &size)); ring_consume(shared->ring)) {
		if (recorded->has_writer)
			writer_discard(&recorded->writer, kind, record, size);
		count += writer_rows_in(kind, record, size);
		store_count(STORE_PLANS_LOST, writer_is_plan(kind));
	}
	shared_ring_free(shared);
	return count;
}

/* --- counters ---------------------------------------------------------------------------- */

static int add_runs(void *runs, const struct statement_stats *stats)
{
	*(uint64_t *)runs += stats->counts->sums[STATEMENT_CALLS];
	return 0;
}

/* The runs that the file may not have counted. Preparations are no runs. */
static uint64_t uncounted_runs(struct recorded *recorded)
{
	uint64_t runs = 0;

	statement_memory_read(recorded->shared.statements, recorded->shared.statements_size,
	                      &recorded->statements, add_runs, &runs);
	statement_reading_commit(&recorded->statements, false);
	return runs;
}

static int stop_at_counts(void *unused, const struct statement_stats *stats)
{
	(void)unused;
	return stats->counts->sums[STATEMENT_CALLS] || stats->counts->sums[STATEMENT_PREPARES];
}

static bool has_uncounted(struct recorded *recorded)
{
	int found = statement_memory_read(recorded->shared.statements, recorded->shared.statements_size,
	                                  &recorded->statements, stop_at_counts, NULL);

	statement_reading_commit(&recorded->statements, false);
	return found != 0;
}

static int store_statements(struct recorded *recorded)
{
	struct shared_ring *shared = &recorded->shared;
	int code;

	do
		code = writer_store_statements(&recorded->writer, shared->statements, shared->statements_size,
		                               &recorded->statements);
	while ((code & 0xff) == SQLITE_BUSY && !give_up(recorded));
	return code;
}

static void note_uncounted(struct recorded *recorded, const char *error)
{
	char *reason = text_format(LOSS_UNCOUNTED "%s", error);

	losses_note(&recorded->losses, reason ? reason : LOSS_UNCOUNTED "no memory", uncounted_runs(recorded),
	            0);
	free(reason);
}

/* Stores the runs that are open at this moment, as many at a time as the ring has room for. */
static int store_open_runs(struct recorded *recorded, uint64_t until_ns, uint64_t *lost)
{
	bool is_done = false;
	int code = SQLITE_OK;

	while (!code && !is_done) {
		is_done = open_runs_hand_over(recorded->shared.runs, until_ns, recorded->shared.ring);
		code = store_records(recorded, lost);
	}
	return code;
}

static int store_open_transactions(struct recorded *recorded, uint64_t until_ns, uint64_t *lost)
{
	struct shared_ring *shared = &recorded->shared;
	bool is_done = false;
	int code = SQLITE_OK;

	while (!code && !is_done) {
		is_done =
			transaction_states_hand_over(shared->transactions, shared->runs, until_ns,
		                                     recorded->is_ending && !recorded->is_left, shared->ring);
		code = store_records(recorded, lost);
	}
	return code;
}

static void note_losses(struct recorded *recorded)
{
	losses_note_dropped(&recorded->losses, ring_dropped(recorded->shared.ring));
	losses_note_refusals(&recorded->losses, recorded->shared.counters, &recorded->refusals);
}

/* --- a process that runs ------------------------------------------------------------------- */

/* If the file cannot be opened, the records stay in the ring. A batch that cannot be stored is lost. */
static void store_committed(struct recorded *recorded)
{
	uint64_t lost = 0;
	char *error = NULL;
	int code = open_file(recorded, &error);
	int64_t bytes;

	if (!code && !shared_ring_copy_committed(&recorded->shared)) {
		losses_note(&recorded->losses, LOSS_UNREADABLE, 0, 1);
	} else if (!code && written_file_is_over_bound(&recorded->to->file, &recorded->writer, &bytes)) {
		error = text_format("%s: has reached its limit of %" PRId64
		                    " bytes, and a reader keeps it from being truncated",
		                    recorded->to->file.path, recorded->to->file.max_bytes);
		lost = discard_records(recorded);
	} else if (!code && store_records(recorded, &lost)) {
		error = writer_failure(&recorded->writer);
		/* A file that is damaged, full or gone must be opened again. */
		writer_close(&recorded->writer, false);
	}
	losses_note(&recorded->losses, error ? error : "cannot be read", lost, 0);
	free(error);
}

/* The copy shows what was open at `asked_ns` and later. Only what had been open for long at that moment gets
 * a row; its end has a row of its own. By a later clock, a short run would seem to have been open for long,
 * and its row would never be finished. The process may have become another program earlier. */
static uint64_t open_until(const struct shared_ring *shared, uint64_t asked_ns)
{
	const uint64_t until_ns = open_waits_until(shared->waits);

	return until_ns < asked_ns ? until_ns : asked_ns;
}

/* What cannot be stored now is stored later. */
static void store_counters(struct recorded *recorded)
{
	struct shared_ring *shared = &recorded->shared;
	bool has_statements = shared_ring_copy_statements(shared) && has_uncounted(recorded);
	const uint64_t asked_ns = clock_ns(CLOCK_MONOTONIC);
	bool is_copied = shared_ring_copy_committed(shared);
	const uint64_t until_ns = open_until(shared, asked_ns);
	bool has_transactions =
		is_copied && transaction_states_has_remains(shared->transactions, until_ns, false);
	bool has_runs = is_copied && open_runs_has_remains(shared->runs, until_ns);
	uint64_t lost = 0;
	char *error = NULL;

	if ((has_statements || has_runs || has_transactions) && !open_file(recorded, &error)) {
		if (has_statements)
			store_statements(recorded);
		/* Before the runs, whose time is part of theirs. */
		if ((has_transactions && store_open_transactions(recorded, until_ns, &lost)) ||
		    (has_runs && store_open_runs(recorded, until_ns, &lost))) {
			error = writer_failure(&recorded->writer);
			losses_note(&recorded->losses, error ? error : "cannot be stored", lost, 0);
		}
		recorded->stored_at_ns = control_now_ns();
	}
	free(error);
}

static void store_counters_at_times(struct recorded *recorded)
{
	int64_t start = control_now_ns();

	if (start < recorded->counters_at_ns && recorded->to->interval_ns)
		return;
	store_counters(recorded);
	recorded->counters_at_ns = next_turn(start, COUNTERS_SHARE, COUNTERS_INTERVAL_NS);
}

enum recorded_load recorded_store(struct recorded *recorded, struct collection *to)
{
	struct shared_ring *shared = &recorded->shared;
	enum recorded_load load = LOAD_NONE;

	recorded->to = to;
	if (!open_ring(recorded))
		return LOAD_NONE;
	if (!ring_remains_empty(shared->ring)) {
		const uint64_t filled = shared->head - shared->tail, size = ring_bytes(shared->ring);

		load = filled > size / 8 ? LOAD_HIGH : LOAD_SOME;
		if (filled > size / 16 || control_now_ns() - recorded->records_at_ns >= to->interval_ns) {
			store_committed(recorded);
			recorded->stored_at_ns = recorded->records_at_ns = control_now_ns();
		}
	}
	store_counters_at_times(recorded);
	note_losses(recorded);
	if (recorded->has_writer && recorded->writer.database.db) {
		if (losses_are_pending(&recorded->losses))
			writer_store_losses(&recorded->writer, &recorded->losses);
		if (load == LOAD_NONE)
			written_file_sync(&to->file, &recorded->writer, false);
		if (control_now_ns() - recorded->stored_at_ns > IDLE_NS)
			recorded_rest(recorded);
	}
	shared_ring_tell_plans_lost(shared,
	                            store_counter(STORE_PLANS_LOST) + store_counter(STORE_PLANS_REMOVED));
	return load;
}

/* --- a process that is gone ------------------------------------------------------------------ */

static void commit_waited(struct ring *ring, const struct open_lock *lock)
{
	struct lock_wait_record *record = ring_reserve(ring, sizeof(*record));

	if (!record)
		return;
	*record = (struct lock_wait_record){ .wait_ns = lock->wait_ns,
		                             .outcome = LOCK_LASTED,
		                             .thread_id = lock->thread_id };
	ring_commit(ring, record, RECORD_LOCK_WAIT);
}

/* Puts waits that had not ended into the ring. */
static void hand_over_waits(const struct shared_ring *shared)
{
	struct open_lock lock;
	uint32_t from = 0;

	while (open_waits_next_lock(shared->waits, &from, &lock))
		commit_waited(shared->ring, &lock);
	open_waits_hand_over(shared->waits, shared->ring, module_log_generation(shared->modules));
}

/* What cannot be stored now is lost. */
static void store_remains(struct recorded *recorded)
{
	struct shared_ring *shared = &recorded->shared;
	uint64_t lost = 0;
	char *error = NULL;
	int code = open_file(recorded, &error);

	losses_note(&recorded->losses, LOSS_INCOMPLETE, ring_remains_repair(shared->ring), 0);
	if (!code && store_records(recorded, &lost))
		error = writer_failure(&recorded->writer);
	lost += discard_records(recorded);
	/* Now the ring has space. */
	hand_over_waits(shared);
	chunk_pool_hand_over(shared->spans, shared->ring);
	if (!code && !error && store_records(recorded, &lost))
		error = writer_failure(&recorded->writer);
	if (!code && !error &&
	    (store_open_transactions(recorded, open_waits_until(shared->waits), &lost) ||
	     store_open_runs(recorded, open_waits_until(shared->waits), &lost)))
		error = writer_failure(&recorded->writer);
	if (!code && !error && has_uncounted(recorded) && store_statements(recorded))
		error = writer_failure(&recorded->writer);
	if (error)
		note_uncounted(recorded, error);
	lost += discard_records(recorded);
	losses_note(&recorded->losses, error ? error : "cannot be read", lost, 0);
	note_losses(recorded);
	losses_note(&recorded->losses, "a forked child could not hand its memory over", 0,
	            shared->lost_children);
	if (code || writer_store_losses(&recorded->writer, &recorded->losses))
		losses_add_waiting(&recorded->to->losses, &recorded->losses);
	free(error);
}

static bool has_remains(struct recorded *recorded)
{
	const struct shared_ring *shared = &recorded->shared;

	return !ring_remains_empty(shared->ring) || losses_are_pending(&recorded->losses) ||
	       has_uncounted(recorded) || chunk_pool_has_remains(shared->spans) ||
	       open_waits_has_remains(shared->waits) ||
	       open_runs_has_remains(shared->runs, open_waits_until(shared->waits)) ||
	       transaction_states_has_remains(shared->transactions, open_waits_until(shared->waits),
	                                      !recorded->is_left) ||
	       shared->lost_children;
}

/* --- its life ------------------------------------------------------------------------------------ */

struct recorded *recorded_open(int fd)
{
	struct recorded *recorded = calloc(1, sizeof(*recorded));

	if (recorded)
		recorded->fd = fd;
	return recorded;
}

void recorded_leave(struct recorded *recorded, struct collection *to)
{
	recorded->is_left = true;
	recorded_end(recorded, to);
}

void recorded_end(struct recorded *recorded, struct collection *to)
{
	recorded->to = to;
	recorded->is_ending = true;
	errno = 0;
	if (open_ring(recorded) && shared_ring_copy(&recorded->shared)) {
		note_losses(recorded);
		if (has_remains(recorded))
			store_remains(recorded);
	} else if (errno == ENOMEM) {
		losses_note(&to->losses, "out of memory for a copy of a process's records", 0, 1);
	} else if (recorded->is_open) { /* it was sound before */
		losses_note(&to->losses, LOSS_UNREADABLE, 0, 1);
	}
	keep_file(recorded);
	recorded_rest(recorded);
	if (recorded->has_writer)
		writer_free(&recorded->writer);
	statement_reading_free(&recorded->statements);
	module_log_free(&recorded->other.modules);
	if (recorded->is_open)
		shared_ring_close(&recorded->shared);
	free(recorded);
}

void collection_fold(struct collection *collection)
{
	const struct database_limits limits = { .wal_bytes =
		                                        retention_wal_bytes(collection->file.max_bytes) };
	char *error = NULL;
	bool is_made;

	if (collection_kept(collection)) {
		database_close(&collection->kept, true);
		return;
	}
	/* An earlier error was reported when there was something to store. */
	database_touch(collection->file.path, &limits, &is_made, &error);
	free(error);
}
