/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher thread: sleeps until there are records, gathers them for one flush interval, stores
 * them, and sleeps without a limit again once no more arrive. Only this thread uses the writing
 * connection.
 *
 * If storing fails, the records in the ring are counted as lost, so that the ring has space for later
 * ones, and the file is tried again after a growing pause. If another process keeps the file locked,
 * the records wait in the ring while it has space.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/free_later.h"
#include "base/sys.h"
#include "base/text.h"
#include "collect/ring_reader.h"
#include "collect/state.h"
#include "modules/modules.h"
#include "query/inspect.h"
#include "query/statement_stats.h"
#include "queryprof.h"
#include "span/site.h"
#include "store/control/counters.h"
#include "store/file/descriptors.h"
#include "store/flusher.h"
#include "store/flusher_file.h"
#include "store/pacer.h"
#include "store/read/pool.h"
#include "store/write/batch.h"
#include "store/write/lifecycle.h"
#include "store/write/stacks.h"
#include "store/write/spans.h"
#include "handler/budget.h"
#include "timers/threads.h"

#define NS_PER_MS 1000000ll
#define REAP_INTERVAL_NS (1000 * NS_PER_MS)

/* How soon a record that is still being written is checked again while a caller waits for it. */
#define STALL_NS (1 * NS_PER_MS)

/* Everything before the ring's tail is stored or lost: wakes the callers that wait for that. */
static void show_drained(void)
{
	store_set_counter(STORE_FLUSHER_CPU_TIME_NS, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	control_lock();
	store_control.drained = ring_tail(store_control.ring);
	condition_change(&store_control.changed);
	control_unlock();
}

/* Waits like ring_reader.h, but checks the budget in between: always while samples are gathered, and without
 * a limit as long as intervals are stretched. */
static void wait_for_ring(bool (*wait)(struct ring *ring, int64_t timeout_ns), int64_t timeout_ns)
{
	int64_t start = control_now_ns(), now = start, end = start + timeout_ns;

	while (pacer_check() || timeout_ns >= 0) {
		int64_t until = now + BUDGET_CHECK_NS;
		if (timeout_ns >= 0 && until >= end) {
			wait(store_control.ring, end > now ? end - now : 0);
			return;
		}
		/* The time does not show it, because the thread may have been woken in time, but run
		 * later. */
		if (wait(store_control.ring, until - now))
			return;
		now = control_now_ns();
		if (timeout_ns < 0 && ring_head(store_control.ring) != ring_tail(store_control.ring))
			return;
	}
	wait(store_control.ring, timeout_ns);
}

/* Waits for the first record. Checks an open run again when it has been open for twice as long. */
static bool wait_for_first(struct ring *ring, int64_t timeout_ns)
{
	int64_t open_ns = timeout_ns < 0 ? query_youngest_open_ns() : -1;

	return open_ns >= 0 ? ring_wait_for_first(ring, open_ns) : ring_wait(ring, timeout_ns);
}

/* --- flushing ---------------------------------------------------------------------- */

/* Counts records that were taken from the ring but are not in the file. */
static void lose(uint64_t lost)
{
	store_count(STORE_LOST, lost);
	losses_note(&flusher.losses, *flusher.failure ? flusher.failure : "there was no trace file", lost, 0);
}

static void discard_ring(uint64_t until)
{
	uint64_t lost = 0;
	void *record;
	unsigned kind;
	size_t size;

	while (ring_tail(store_control.ring) < until &&
	       (record = ring_peek(store_control.ring, &kind, &size))) {
		if (flusher.has_writer)
			writer_discard(&flusher.writer, kind, record, size);
		else if (kind == RECORD_SPAN_SITE)
			sites_publish_again();
		if (kind == RECORD_STATEMENTS)
			statement_stats_discard();
		lost += writer_rows_in(kind, record, size);
		store_count(STORE_PLANS_LOST, writer_is_plan(kind));
		if (kind == RECORD_SPANS)
			store_count(STORE_SPANS_LOST, spans_in(record, size));
		ring_consume(store_control.ring);
	}
	lose(lost);
}

static bool check_bound(void)
{
	int64_t bytes;

	flusher.over_bound = written_file_is_over_bound(&flusher.file, &flusher.writer, &bytes);
	store_set_counter(STORE_BYTES, (uint64_t)bytes);
	if (flusher.over_bound)
		flusher_note_failure(text_format("%s: has reached its limit of %" PRId64
		                                 " bytes, and a reader keeps it from being truncated",
		                                 flusher.file.path, flusher.file.max_bytes));
	return !flusher.over_bound;
}

/* False: failed, and reported it. */
static bool trim(void)
{
	uint64_t trimmed = 0;
	int code = retention_apply(&flusher.retention, &flusher.writer, flusher.file.max_bytes,
	                           flusher_is_interrupted, &trimmed);

	store_count(STORE_TRIMMED, trimmed);
	if (!code || (code & 0xff) == SQLITE_BUSY)
		return true;
	flusher_note_failure(writer_failure(&flusher.writer));
	return false;
}

/* After a successful batch. */
static void finish_batch(const struct writer_result *result)
{
	store_count(STORE_SAMPLES, result->samples);
	store_count(STORE_QUERIES, result->queries);
	lose(result->lost);
	store_count(STORE_FIELDS_SKIPPED, result->fields_skipped);
	store_count(STORE_SPANS, result->spans);
	store_count(STORE_FLUSHES, 1);
	control_wait_for_file(false);
	store_set_counter(STORE_FLUSHER_CPU_TIME_NS, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	flusher.file.is_unsynced = true;
	store_set_counter(STORE_STACKS, flusher.writer.stacks->known.count);
	if (trim() && check_bound())
		flusher_clear_failure();
}

/* Another process has locked the file, so the records continue to wait. */
static void finish_locked(void)
{
	flusher.retry_at = 0; /* it has waited long enough */
	/* Discards half of it to make space for new records. */
	if (flusher_ring_runs_full())
		discard_ring(ring_tail(store_control.ring) + flusher_used_ring() / 2);
}

static void finish_failure(int code, const struct writer_result *result)
{
	if (result->busy) {
		if (!flusher_is_interrupted())
			flusher_note_failure(text_format("%s: locked by another process", flusher.file.path));
		finish_locked();
		return;
	}
	flusher_note_failure(writer_failure(&flusher.writer));
	lose(result->lost);
	store_count(STORE_SPANS_LOST, result->spans_lost);
	store_count(STORE_PLANS_LOST, result->plans_lost);
	/* A file that is damaged, full or gone must be opened again. */
	if ((code & 0xff) != SQLITE_FULL)
		flusher_close_file(false);
}

/* is_last: nothing more is expected for now. */
static void sync_file(bool is_last)
{
	if (flusher.writer.database.db && flusher.settings_path &&
	    !written_file_sync(&flusher.file, &flusher.writer, is_last))
		flusher_note_failure(
			text_format("%s: cannot be synced: %s", flusher.file.path, strerror(errno)));
}

static void store_losses(void)
{
	struct losses *losses = &flusher.losses;

	losses_note_refusals(losses, sampler_counters, &flusher.refusals);
	losses_note_dropped(losses, ring_dropped(store_control.ring));
	if (losses_are_pending(losses) && flusher.writer.database.db && !flusher.failing &&
	    writer_store_losses(&flusher.writer, losses))
		flusher_note_failure(writer_failure(&flusher.writer));
}

/* Stores the ring's content. */
static void flush(bool urgent)
{
	struct ring *ring = store_control.ring;
	struct writer_result result = { .more = true };
	int64_t now = control_now_ns();
	uint64_t until;

	descriptors_fit_limit();
	if (flusher.reaped_at + REAP_INTERVAL_NS <= now) {
		flusher.reaped_at = now;
		sampler_reap();
	}
	modules_refresh(false);
	query_publish_open();
	until = ring_head(ring);
	while (result.more && !flusher_is_interrupted() && ring_tail(ring) < until) {
		bool pausing = flusher.failing && !urgent && control_now_ns() < flusher.retry_at;
		int code = pausing ? QP_STORE : flusher_ensure_file();

		if (code == DATABASE_LOCKED) {
			finish_locked();
			break;
		}
		if (code || (flusher.over_bound && !check_bound())) {
			discard_ring(until);
			break;
		}
		/* Each waiting caller causes one new try. */
		urgent = false;
		code = writer_store(&flusher.writer, ring, WRITER_BATCH,
		                    retention_batch_bytes(flusher.file.max_bytes), &result);
		if (code) {
			finish_failure(code, &result);
			if (result.busy)
				break;
			result.more = true; /* the rest is lost in the next round */
		} else if (result.records) {
			finish_batch(&result);
			if (result.more)
				writer_let_others(&flusher.writer);
		}
	}
	if (flusher.retention.trimming && flusher.writer.database.db && !flusher_is_interrupted())
		trim();
	store_losses();
	show_drained();
	sync_file(false);
}

/* --- requests ------------------------------------------------------------------------ */

static void apply_settings(struct settings_of_store *settings)
{
	if (settings->path)
		snprintf(flusher.settings_text, sizeof(flusher.settings_text), "%s", settings->path);
	flusher.settings_path = settings->path ? flusher.settings_text : NULL;
	flusher_set_max_bytes(settings->max_bytes);
	flusher.interval_ns = settings->flush_interval_ns;
	flusher.does_chores = settings->does_chores;
}

static bool is_same_path(const char *left, const char *right)
{
	return left == right || (left && right && !strcmp(left, right));
}

static int serve_open(char **error)
{
	int code = QP_OK;

	if (!flusher_has_current_file()) {
		flusher_close_file(false);
		code = flusher_open_file(error);
		if (!code)
			flusher_clear_failure();
		else
			flusher_note_failure(*error ? strdup(*error) : NULL);
	}
	/* A caller that names a file must learn that it cannot be opened. */
	if (!code && flusher.settings_path && (*error = flusher_refusal()))
		code = QP_STORE;
	return code == DATABASE_LOCKED ? QP_STORE : code;
}

static int serve_configure(struct settings_of_store *wanted, char **error)
{
	struct database_limits limits;
	int code;

	if (is_same_path(wanted->path, flusher.settings_path)) {
		apply_settings(wanted);
		if (flusher.writer.database.db) {
			flusher_set_limits(&limits);
			database_set_limits(&flusher.writer.database, &limits);
			flusher.retention.trimming = true; /* the limit may be lower now */
		}
		return QP_OK;
	}
	if (wanted->path && flusher.table_error) {
		*error = flusher_refusal();
		return QP_STORE;
	}
	flush(true);
	if (wanted->path && (code = flusher_try_file(wanted, error)))
		return code;
	flusher_close_file(true);
	tempdir_remove(&flusher.tempdir);
	flusher_clear_failure();
	apply_settings(wanted);
	return wanted->path ? serve_open(error) : QP_OK;
}

REQUIRES(store_control.lock) static void serve_request(void)
{
	enum request request = store_control.request;
	struct settings_of_store wanted = store_control.wanted;
	char *error = NULL;
	int code;

	store_control.request_begun = store_control.request_number;
	control_unlock();
	code = request == REQUEST_OPEN ? serve_open(&error) : serve_configure(&wanted, &error);
	control_lock();
	store_control.request = REQUEST_NONE;
	store_control.request_done = store_control.request_number;
	store_control.request_code = code;
	free(store_control.request_error);
	store_control.request_error = error;
	free(store_control.wanted.path);
	store_control.wanted.path = NULL;
	condition_change(&store_control.changed);
}

BOUNDED_WAIT_DEFINE(parked, "the flusher: the end of a fork()", BOUND_NONE, "the thread that forked");

REQUIRES(store_control.lock) static void park(void)
{
	struct bounded_wait wait = bounded_wait_begin(&parked);
	bool keeps;

	control_unlock();
	keeps = flusher_keeps_file();
	if (!keeps)
		flusher_close_file(false);
	control_lock();
	store_control.is_open_at_fork = keeps && !flusher.table_error;
	control_happens(EVENT_FORK);
	if (store_control.state != STORE_PARKED) /* a shutdown came first */
		return;
	while (store_control.pauses)
		condition_wait(&store_control.changed, &store_control.lock, &wait, BOUND_NONE);
	control_happens(EVENT_FORK_OVER);
}

/* --- the thread ------------------------------------------------------------------------ */

/* Serves forks, requests and readers. */
static void serve(bool *stop, bool *urgent)
{
	control_lock();
	for (;;) {
		if (store_control.pauses && store_control.state == STORE_RUNNING)
			park();
		else if (store_control.request != REQUEST_NONE)
			serve_request();
		else if (store_control.reading_wanted)
			flusher_start_reading();
		else
			break;
	}
	*stop = store_control.state == STORE_STOPPING;
	*urgent = store_control.drained < store_control.drain_target;
	control_unlock();
}

static bool is_requested(void)
{
	bool requested;

	control_lock();
	requested = store_control.pauses || store_control.state == STORE_STOPPING ||
	            store_control.request != REQUEST_NONE || store_control.reading_wanted ||
	            store_control.drained < store_control.drain_target;
	control_unlock();
	return requested;
}

/* Work that can wait, if samples can wait, too. */
static void do_chores(void)
{
	store_chore chore = store_control.chore;
	bool more =
		flusher.does_chores && chore && flusher.writer.database.db && flusher_ensure_file() == QP_OK;

	while (more && !flusher.failing && !is_requested() &&
	       flusher_used_ring() < ring_bytes(store_control.ring) / 8)
		more = chore(flusher.writer.database.db, flusher.writer.file_identity);
}

static bool has_records(void)
{
	unsigned kind;
	size_t size;

	return ring_peek(store_control.ring, &kind, &size) != NULL;
}

/* Stores the rest, and once more what has arrived meanwhile. */
static void finish(void)
{
	control_lock();
	control_happens(EVENT_STOP_SEEN); /* the flush is not interrupted */
	control_unlock();
	if (statement_stats_are_due())
		statement_stats_announce(); /* no flush follows */
	flush(true);
	losses_note(&flusher.losses, LOSS_INCOMPLETE, ring_left(store_control.ring), 0);
	store_losses();
	pacer_end();
	/* Before the file is closed, because the last connection to close checkpoints the log. If
	 * the reading thread hangs, SQLite must not be used any more. */
	if (pool_end())
		flusher_close_file(true);
	tempdir_remove(&flusher.tempdir);
	control_lock();
	control_happens(EVENT_STORED);
	control_unlock();
}

void flusher_main(void)
{
	bool stop, urgent, gathered = false;

	flusher.table_error = descriptors_separate();
	flusher_clear_failure();
	free_what_waits();
	if (flusher.has_writer && flusher.writer.identity.process_id != getpid()) /* it is its parent's */
		writer_reset_identity(&flusher.writer);
	control_lock();
	apply_settings(&store_control.settings);
	control_unlock();
	for (;;) {
		bool any = has_records();

		serve(&stop, &urgent);
		if (stop)
			break;
		if (urgent || gathered)
			flush(urgent);
		gathered = false;
		if (urgent) {
			/* The rest: a record that is being written. */
			if (is_requested())
				ring_wait(store_control.ring, STALL_NS);
			gathered = any;
			continue;
		}
		do_chores();
		if (!any && !flusher.retention.trimming) {
			sync_file(true);
			wait_for_ring(wait_for_first, -1);
		}
		if (is_requested())
			continue;
		wait_for_ring(ring_wait, flusher.interval_ns);
		gathered = true;
	}
	finish();
}

void flusher_free(void)
{
	if (flusher.has_writer)
		writer_free(&flusher.writer);
	flusher.has_writer = false;
	flusher.settings_path = NULL;
	flusher.failing = false;
	flusher.retention = (struct retention){ .trimming = false };
}

void flusher_discard(void)
{
	discard_ring(ring_head(store_control.ring));
}

void flusher_reset_in_child(void)
{
	flusher.losses = (struct losses){ .ring_dropped = 0 };
	flusher.refusals = (struct refusals){ .timers = 0 };
	flusher.failure[0] = '\0';
	pacer_after_fork();
	tempdir_forget(&flusher.tempdir);
	free_text_later(flusher.file.path);
	flusher.file.path = NULL;
	/* A store in memory is still open, but belongs to the parent. */
	writer_forget_statements(&flusher.writer);
	flusher.writer.database = DATABASE_CLOSED;
	flusher.failing = false;
	flusher.retention = (struct retention){ .trimming = false };
}
