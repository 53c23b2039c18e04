/* SPDX-License-Identifier: Apache-2.0 */
#include "store/recovery.h"

#include <stdlib.h>

#include "base/text.h"
#include "collect/open_runs.h"
#include "collect/open_waits.h"
#include "collect/ring_reader.h"
#include "collect/ring_remains.h"
#include "handler/ring.h"
#include "modules/module_log.h"
#include "queryprof.h"
#include "span/chunk_pool.h"
#include "store/control.h"
#include "store/counters.h"
#include "store/shared_ring.h"
#include "store/write/batch.h"
#include "store/write/lifecycle.h"
#include "store/write/retention.h"
#include "wire/lock_record.h"
#include "wire/statement_memory.h"

/* Another process has the file locked. Not seen for so long, it is another time. */
#define LOCKED_GAP_NS 2000000000

static bool give_up(void *context)
{
	struct recovery *recovery = context;
	int64_t now = control_now_ns();

	if (!recovery->locked_since_ns || now - recovery->locked_until_ns > LOCKED_GAP_NS)
		recovery->locked_since_ns = now;
	recovery->locked_until_ns = now;
	return now - recovery->locked_since_ns >= RECOVERY_PATIENCE_NS;
}

static bool never(void)
{
	return false;
}

static int open_file(struct writer *writer, const char *path, int64_t max_bytes, struct recovery *recovery,
                     char **error)
{
	const struct database_limits limits = { .wal_bytes = retention_wal_bytes(max_bytes) };
	int code = writer_open(writer, path, &limits, error);

	while (code == DATABASE_LOCKED && !give_up(recovery)) {
		free(*error);
		*error = NULL;
		code = writer_open(writer, path, &limits, error);
	}
	return code == DATABASE_LOCKED ? QP_STORE : code;
}

/* Whether the flusher's last transaction came to its end. Another process may have got the
 * number of the batch when it did not. */
static bool is_batch_stored(struct writer *writer, uint64_t batch)
{
	struct prepared *find = writer_bind(writer, &writer->sql.find_batch);

	bind_text(find, "hostname", writer->identity.hostname, SIZE_MAX);
	bind_number(find, "process_id", writer->identity.process_id);
	bind_number(find, "start_time_ns", writer->identity.start_time_ns);
	bind_number(find, "id", (int64_t)batch);
	return writer_number(writer, find) > 0;
}

/* Until nothing is left, or one batch cannot be stored. */
static int store_records(struct writer *writer, struct shared_ring *shared, int64_t max_bytes,
                         struct recovery *recovery, uint64_t *lost)
{
	struct retention retention = { .trimming = false };
	struct writer_result result = { .more = true };
	uint64_t trimmed = 0;
	int code = SQLITE_OK;

	while (!code && result.more) {
		code = writer_store(writer, shared->ring, WRITER_BATCH, retention_batch_bytes(max_bytes),
		                    &result);
		shared_ring_free(shared);
		recovery->samples += result.samples;
		recovery->queries += result.queries;
		*lost += result.lost;
		if (!code) {
			recovery->locked_since_ns = 0;
			code = retention_apply(&retention, writer, max_bytes, never, &trimmed);
		} else if (result.busy && !give_up(recovery)) {
			code = SQLITE_OK;
		}
	}
	return code;
}

/* All that is left, when the file cannot be had. */
static uint64_t count_records(struct ring *ring)
{
	uint64_t count = 0;
	unsigned kind;
	size_t size;

	for (; ring_peek(ring, &kind, &size); ring_consume(ring))
		count += writer_is_row(kind);
	return count;
}

static int add_runs(void *runs, const struct statement_stats *stats)
{
	*(uint64_t *)runs += stats->counts->sums[STATEMENT_CALLS];
	return 0;
}

/* Runs that the file may not have counted. */
static uint64_t uncounted_runs(const struct shared_ring *shared)
{
	uint64_t runs = 0;

	statement_memory_remains(shared->statements, shared->statements_size, 0, add_runs, &runs);
	return runs;
}

static int store_statements(struct writer *writer, const struct shared_ring *shared,
                            struct recovery *recovery)
{
	int code;

	do
		code = writer_store_statements(writer, shared->statements, shared->statements_size);
	while ((code & 0xff) == SQLITE_BUSY && !give_up(recovery));
	return code;
}

static void note_uncounted(struct shared_ring *shared, const char *error)
{
	char *reason = text_format("runs were not counted: %s", error);

	losses_note(shared->losses, reason ? reason : "runs were not counted", uncounted_runs(shared), 0);
	free(reason);
}

static bool commit_waited(struct ring *ring, const struct open_lock *lock)
{
	struct lock_wait_record *record = ring_reserve(ring, sizeof(*record));

	if (!record)
		return false;
	*record = (struct lock_wait_record){ .wait_ns = lock->wait_ns,
		                             .outcome = LOCK_LASTED,
		                             .thread_id = lock->thread_id };
	ring_commit(ring, record, RECORD_LOCK_WAIT);
	return true;
}

/* Waits that had not ended. Returns how many samples the ring has no room for. */
static uint64_t hand_over_waits(const struct shared_ring *shared)
{
	struct open_lock lock;
	uint32_t from = 0;

	while (open_waits_next_lock(shared->waits, &from, &lock) && commit_waited(shared->ring, &lock))
		;
	return open_waits_hand_over(shared->waits, shared->ring, module_log_generation(shared->modules));
}

/* Runs that had not ended: as many at a time as the ring has room for. */
static int store_open_runs(struct writer *writer, struct shared_ring *shared, int64_t max_bytes,
                           struct recovery *recovery, uint64_t *lost)
{
	const uint64_t until_ns = open_waits_until(shared->waits);
	bool is_done = false;
	int code = SQLITE_OK;

	while (!code && !is_done) {
		is_done = open_runs_hand_over(shared->runs, until_ns, shared->ring);
		code = store_records(writer, shared, max_bytes, recovery, lost);
	}
	return code;
}

/* The process is gone: what cannot be stored now is lost. */
static void store_remains(struct writer *writer, struct shared_ring *shared, const char *path,
                          int64_t max_bytes, struct recovery *recovery)
{
	struct ring *ring = shared->ring;
	uint64_t batch, lost = 0;
	char *error = NULL;
	int code = open_file(writer, path, max_bytes, recovery, &error);
	bool is_stored = !code && ring_remains_announced(ring, &batch) && is_batch_stored(writer, batch);

	recovery->unfinished += ring_remains_repair(ring, is_stored);
	if (!code && store_records(writer, shared, max_bytes, recovery, &lost))
		error = writer_failure(writer);
	/* Now the ring has room. */
	lost += hand_over_waits(shared);
	store_count(STORE_SPANS_LOST, chunk_pool_hand_over(shared->spans, ring));
	if (!code && !error && store_records(writer, shared, max_bytes, recovery, &lost))
		error = writer_failure(writer);
	if (!code && !error && store_open_runs(writer, shared, max_bytes, recovery, &lost))
		error = writer_failure(writer);
	if (!code && !error && uncounted_runs(shared) && store_statements(writer, shared, recovery))
		error = writer_failure(writer);
	if (error)
		note_uncounted(shared, error);
	lost += count_records(ring);
	shared_ring_free(shared);
	losses_note(shared->losses, error ? error : "cannot be read", lost, 0);
	losses_note_dropped(shared->losses, ring_dropped(ring));
	losses_note(shared->losses, "a forked child could open no file", 0, shared->lost_children);
	if (code || writer_store_losses(writer, shared->losses))
		losses_add_waiting(&recovery->losses, shared->losses);
	free(error);
}

/* The process runs, and keeps its account itself. Where the file cannot be had, the ring
 * keeps what it has. */
static void store_committed(struct writer *writer, struct shared_ring *shared, const char *path,
                            int64_t max_bytes, struct recovery *recovery)
{
	uint64_t lost = 0;
	char *error = NULL;
	int code = open_file(writer, path, max_bytes, recovery, &error);

	if (!code && shared_ring_copy_committed(shared) &&
	    store_records(writer, shared, max_bytes, recovery, &lost))
		error = writer_failure(writer);
	losses_note(&recovery->losses, error ? error : "cannot be read", lost, 0);
	if (!code && !writer_store_losses(writer, shared->losses))
		shared_ring_commit_losses(shared);
	free(error);
}

static bool has_records(const struct shared_ring *shared)
{
	return !ring_remains_empty(shared->ring) || losses_wait(shared->losses) ||
	       ring_dropped(shared->ring) != shared->losses->ring_dropped;
}

static bool has_remains(const struct shared_ring *shared)
{
	return has_records(shared) || uncounted_runs(shared) || chunk_pool_has_remains(shared->spans) ||
	       open_waits_has_remains(shared->waits) ||
	       open_runs_has_remains(shared->runs, open_waits_until(shared->waits)) || shared->lost_children;
}

typedef void (*store_function)(struct writer *writer, struct shared_ring *shared, const char *path,
                               int64_t max_bytes, struct recovery *recovery);

/* With a writer that has the process's name. */
static void store_as_process(struct shared_ring *shared, const char *path, int64_t max_bytes,
                             struct recovery *recovery, store_function store)
{
	struct writer_other process = { .log = shared->modules, .log_size = shared->modules_size };
	struct writer *writer = malloc(sizeof(*writer));

	if (writer && writer_init(writer, give_up, recovery)) {
		writer->identity = shared->identity;
		process.has_own_ids = open_runs_had_own_ids(shared->runs);
		writer->other = &process;
		store(writer, shared, path, max_bytes, recovery);
		writer_close(writer, false);
		module_log_free(&process.modules);
		writer_free(writer);
	}
	free(writer);
}

void recovery_store(int fd, const char *path, int64_t max_bytes, struct recovery *recovery)
{
	struct shared_ring shared;

	if (!shared_ring_open(&shared, fd))
		return;
	if (shared_ring_copy(&shared) && has_remains(&shared))
		store_as_process(&shared, path, max_bytes, recovery, store_remains);
	shared_ring_close(&shared);
}

void recovery_store_running(int fd, const char *path, int64_t max_bytes, struct recovery *recovery)
{
	struct shared_ring shared;

	if (!shared_ring_open(&shared, fd))
		return;
	if (has_records(&shared))
		store_as_process(&shared, path, max_bytes, recovery, store_committed);
	shared_ring_close(&shared);
}
