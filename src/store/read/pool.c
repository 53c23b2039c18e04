/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each cursor has a connection to itself. Connections go back to a small pool with their
 * statement still prepared, so that the same request sent again (as a join does, row by
 * row) costs no parsing.
 *
 * A descriptor of the trace file is a number that means nothing, or something else, to the
 * host's threads (descriptors.h), and SQLite shares descriptors of one file between
 * connections. So what opens, reads or closes a file runs on the reading thread, which the
 * flusher makes when it is first needed, and which ends some seconds after its last cursor.
 * It does one job after the other: a cursor that is long in coming to its next row lets
 * others wait. Such a cursor is "remote". A cursor on the empty stand-in, in memory, is not.
 *
 * An owner that no longer waits for its job takes it out of the queue, or interrupts the
 * statement. A call that hangs in the file system cannot be interrupted; the cursor is the reading
 * thread's then, until the job ends.
 */
#include "store/read/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "sampler/threads.h"
#include "store/control.h"
#include "store/counters.h"

#define IDLE_MAX 4
#define IDLE_MS 5000

/* An interrupted statement ends within this, unless the disk does not respond. */
#define INTERRUPT_MS 100

/* Instructions of SQLite between two signs of progress: some 100 us. */
#define PROGRESS_STEPS 10000

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct store_cursor *idle;
	unsigned idle_count, busy_count;
	unsigned pauses; /* no new cursors */
	uint64_t forks;  /* that led to this process; relaxed atomic */

	/* The reading thread. */
	pthread_cond_t requested;
	pthread_t thread;
	bool has_thread; /* to be joined */
	bool runs, ending;
	uint64_t cpu_ns; /* that it has used and reported */
	struct store_cursor *first_job, *last_job, *running;
	sqlite3 *stepping;             /* the connection of a statement that the job steps */
	uint64_t progress;             /* relaxed atomic: signs of it, of all jobs */
	struct store_cursor *returned; /* given back before their end: to be made ready, or closed */
	struct store_cursor *remote;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.requested = PTHREAD_COND_INITIALIZER,
};
LOCK_DEFINE_GROUPED(pool, LOCK_STORE_POOL, &pool.lock);

static bool wait_until(pthread_cond_t *condition, const struct waiting *waiting)
{
	return waiting_goes_on(waiting, condition, &pool.lock);
}

bool pool_is_foreign(const struct store_cursor *cursor)
{
	return cursor->forks != __atomic_load_n(&pool.forks, __ATOMIC_RELAXED);
}

/* --- jobs ------------------------------------------------------------------------------ */

static void set_refusal(struct store_cursor *cursor, char *sentence)
{
	free(cursor->refusal);
	cursor->refusal = sentence;
}

static bool is_under_way(const struct store_cursor *cursor)
{
	return cursor->job == JOB_QUEUED || cursor->job == JOB_RUNNING;
}

/* With the lock held. */
static void add_job(struct store_cursor *cursor)
{
	cursor->job = JOB_QUEUED;
	cursor->next_job = NULL;
	*(pool.first_job ? &pool.last_job->next_job : &pool.first_job) = cursor;
	pool.last_job = cursor;
	pthread_cond_signal(&pool.requested);
}

/* With the lock held: it has not begun. */
static void remove_job(struct store_cursor *cursor)
{
	struct store_cursor *before = NULL;

	for (struct store_cursor *at = pool.first_job; at != cursor; at = at->next_job)
		before = at;
	*(before ? &before->next_job : &pool.first_job) = cursor->next_job;
	if (pool.last_job == cursor)
		pool.last_job = before;
	cursor->job = JOB_NONE;
}

/* With the lock held. False: the owner gives up, or nothing has gone on for its limit. */
static bool await_job(struct store_cursor *cursor)
{
	struct waiting waiting = waiting_begin(&cursor->wait);
	uint64_t seen = 0, progress;

	while (is_under_way(cursor)) {
		if (wait_until(&pool.changed, &waiting) || !is_under_way(cursor))
			continue;
		progress = __atomic_load_n(&pool.progress, __ATOMIC_RELAXED);
		if (cursor->job != JOB_RUNNING || !waiting_is_over(&waiting) || progress == seen)
			return false;
		seen = progress;
		waiting = waiting_begin(&cursor->wait);
	}
	return true;
}

/* With the lock held. */
static void give_up_job(struct store_cursor *cursor)
{
	struct waiting grace = waiting_begin_ms(INTERRUPT_MS);

	if (cursor->job == JOB_QUEUED)
		remove_job(cursor);
	if (pool.running == cursor && pool.stepping)
		sqlite3_interrupt(pool.stepping);
	while (is_under_way(cursor) && wait_until(&pool.changed, &grace))
		;
}

static void refuse(struct store_cursor *cursor, bool was_started)
{
	const struct store_wait *wait = &cursor->wait;

	if (!was_started)
		set_refusal(cursor,
		            text_format("trace log: the store has ended, or has no thread for reading"));
	else if (wait->give_up && wait->give_up(wait->context))
		set_refusal(cursor, text_format("trace log: reading was interrupted"));
	else
		set_refusal(
			cursor,
			text_format("trace log: nothing was read for %d ms, which is the limit: the thread"
		                    " that reads is busy with another statement, or the disk does not"
		                    " respond",
		                    wait->timeout_ms));
}

bool pool_run(struct store_cursor *cursor, void (*work)(struct store_cursor *cursor))
{
	struct waiting waiting = waiting_begin(&cursor->wait);
	bool started, done = false;

	if (!cursor->is_remote) {
		work(cursor);
		return true;
	}
	pthread_mutex_lock(&pool.lock);
	if (!pool.runs) {
		pthread_mutex_unlock(&pool.lock);
		control_start_reading(&waiting);
		pthread_mutex_lock(&pool.lock);
	}
	cursor->work = work;
	cursor->job = JOB_REFUSED;
	if (pool.runs && !pool.ending) {
		add_job(cursor);
		done = await_job(cursor);
	}
	started = cursor->job != JOB_REFUSED;
	if (started && !done)
		give_up_job(cursor);
	pthread_mutex_unlock(&pool.lock);
	if (!started || !done)
		refuse(cursor, started);
	return started && done;
}

static int note_progress(void *unused)
{
	(void)unused;
	__atomic_fetch_add(&pool.progress, 1, __ATOMIC_RELAXED);
	return 0;
}

void pool_watch_progress(struct store_cursor *cursor)
{
	sqlite3_progress_handler(cursor->db, PROGRESS_STEPS, note_progress, NULL);
}

bool pool_hold(struct store_cursor *cursor)
{
	if (pool_is_foreign(cursor))
		return false;
	pthread_mutex_lock(&pool.lock);
	if (!is_under_way(cursor) && cursor->statement)
		return true;
	pthread_mutex_unlock(&pool.lock);
	return false;
}

void pool_release(void)
{
	pthread_mutex_unlock(&pool.lock);
}

/* --- the pool ------------------------------------------------------------------------ */

static void close_connection(struct store_cursor *cursor)
{
	sqlite3_finalize(cursor->statement);
	sqlite3_close(cursor->db);
	cursor->statement = NULL;
	cursor->db = NULL;
}

static void destroy(struct store_cursor *cursor)
{
	close_connection(cursor);
	rows_free(&cursor->rows);
	free(cursor->sql);
	free(cursor->path);
	free(cursor->error);
	free(cursor->refusal);
	free(cursor);
}

/* An idle one, with the same statement if there is such; counted as busy. */
static struct store_cursor *take_idle(const char *sql, const char *path, uint64_t epoch)
{
	struct store_cursor **best = NULL, *cursor;

	for (struct store_cursor **at = &pool.idle; *at; at = &(*at)->next) {
		if ((*at)->epoch != epoch || !(*at)->path != !path)
			continue;
		if (!best || !strcmp((*at)->sql, sql))
			best = at;
		if (!strcmp((*at)->sql, sql))
			break;
	}
	if (!best)
		return NULL;
	cursor = *best;
	*best = cursor->next;
	pool.idle_count--;
	return cursor;
}

/* With the lock held. */
static void count_in(struct store_cursor *cursor)
{
	pool.busy_count++;
	if (!cursor->is_remote)
		return;
	cursor->before = NULL;
	cursor->after = pool.remote;
	if (cursor->after)
		cursor->after->before = cursor;
	pool.remote = cursor;
}

static void count_out(struct store_cursor *cursor)
{
	pool.busy_count--;
	pthread_cond_broadcast(&pool.changed);
	if (cursor->is_remote) {
		if (cursor->after)
			cursor->after->before = cursor->before;
		*(cursor->before ? &cursor->before->after : &pool.remote) = cursor->after;
	}
}

struct store_cursor *pool_take(const char *sql, char *path, uint64_t epoch)
{
	struct store_cursor *cursor;

	pthread_mutex_lock(&pool.lock);
	while (pool.pauses)
		pthread_cond_wait(&pool.changed, &pool.lock);
	cursor = take_idle(sql, path, epoch);
	if (!cursor && (cursor = calloc(1, sizeof *cursor))) {
		cursor->path = path;
		path = NULL;
		cursor->epoch = epoch;
		cursor->forks = __atomic_load_n(&pool.forks, __ATOMIC_RELAXED);
		cursor->is_remote = cursor->path != NULL;
	}
	if (cursor) {
		/* Left by its last owner. */
		cursor->is_left = false;
		cursor->job = JOB_NONE;
		set_refusal(cursor, NULL);
		count_in(cursor);
	}
	pthread_mutex_unlock(&pool.lock);
	free(path);
	return cursor;
}

/* Those of other files are not: no call says when such a file is not read any more. */
static bool can_be_kept(const struct store_cursor *cursor)
{
	return cursor->statement && (cursor->epoch || !cursor->path) && pool.idle_count < IDLE_MAX &&
	       !pool.pauses && cursor->epoch == control_epoch();
}

/* Into the pool, or closed before it counts as closed: a fork waits for that. Called and
 * left with the lock held, where its connection may be closed. */
static void settle(struct store_cursor *cursor)
{
	if (can_be_kept(cursor)) {
		count_out(cursor);
		cursor->next = pool.idle;
		pool.idle = cursor;
		pool.idle_count++;
		return;
	}
	pthread_mutex_unlock(&pool.lock);
	close_connection(cursor);
	pthread_mutex_lock(&pool.lock);
	count_out(cursor);
	destroy(cursor);
}

static void make_ready(struct store_cursor *cursor)
{
	if (!cursor->statement)
		return;
	sqlite3_reset(cursor->statement);
	sqlite3_clear_bindings(cursor->statement);
}

/* With the lock held: of the thread that calls, or all. */
static void close_idle(bool remote, bool direct)
{
	for (struct store_cursor **at = &pool.idle; *at;) {
		struct store_cursor *cursor = *at;

		if (cursor->is_remote ? remote : direct) {
			*at = cursor->next;
			pool.idle_count--;
			destroy(cursor);
		} else {
			at = &cursor->next;
		}
	}
	pthread_cond_broadcast(&pool.changed);
}

void pool_close_idle(void)
{
	pthread_mutex_lock(&pool.lock);
	close_idle(true, true);
	pthread_mutex_unlock(&pool.lock);
}

bool pool_pause(int timeout_ms)
{
	struct waiting waiting = waiting_begin_ms(timeout_ms);
	bool quiet;

	pthread_mutex_lock(&pool.lock);
	pool.pauses++;
	close_idle(false, true);
	pthread_cond_signal(&pool.requested);
	while ((pool.busy_count || pool.idle) && wait_until(&pool.changed, &waiting))
		;
	close_idle(false, true);
	quiet = !pool.busy_count && !pool.idle;
	/* Held until pool_resume(): no thread is in the middle of anything at a fork. */
	return quiet;
}

void pool_resume(void)
{
	pool.pauses--;
	pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

void pool_reset_in_child(void)
{
	/* Cursors that were in use are the parent's: left alone, never closed. */
	pool.busy_count = pool.idle_count = 0;
	pool.idle = pool.returned = pool.remote = NULL;
	pool.stepping = NULL;
	pool.first_job = pool.last_job = pool.running = NULL;
	pool.has_thread = pool.runs = pool.ending = false;
	pool.pauses = 0;
	__atomic_fetch_add(&pool.forks, 1, __ATOMIC_RELAXED);
	pthread_cond_init(&pool.changed, NULL);
	pthread_cond_init(&pool.requested, NULL);
	pthread_mutex_unlock(&pool.lock);
}

/* With the lock held. */
static void add_returned(struct store_cursor *cursor)
{
	cursor->next = pool.returned;
	pool.returned = cursor;
	pthread_cond_signal(&pool.requested);
}

/* Given back by a thread that may not close it: it is made ready, and its snapshot let
 * go, by the one that may; unless there is nothing to let go. */
void pool_give_back(struct store_cursor *cursor)
{
	if (!cursor->is_remote)
		make_ready(cursor);
	pthread_mutex_lock(&pool.lock);
	if (is_under_way(cursor)) {
		cursor->is_left = true;
	} else if (cursor->is_remote && cursor->code == SQLITE_DONE && can_be_kept(cursor)) {
		make_ready(cursor);
		settle(cursor);
	} else if (!cursor->is_remote || !cursor->db) {
		settle(cursor);
	} else {
		add_returned(cursor);
	}
	pthread_mutex_unlock(&pool.lock);
}

/* --- the reading thread ---------------------------------------------------------------- */

/* With the lock held: one thing that is to do. */
static bool serve_one(void)
{
	struct store_cursor *cursor = pool.returned;
	struct store_cursor *job = pool.first_job;

	if (pool.pauses && pool.idle) {
		close_idle(true, false);
	} else if (cursor) {
		pool.returned = cursor->next;
		pthread_mutex_unlock(&pool.lock);
		make_ready(cursor);
		pthread_mutex_lock(&pool.lock);
		settle(cursor);
	} else if (job) {
		pool.first_job = job->next_job;
		pool.running = job;
		pool.stepping = job->statement ? job->db : NULL;
		job->job = JOB_RUNNING;
		note_progress(NULL);
		pthread_mutex_unlock(&pool.lock);
		job->work(job);
		store_count_own_time(STORE_READER_CPU_TIME_NS, &pool.cpu_ns);
		pthread_mutex_lock(&pool.lock);
		pool.running = NULL;
		pool.stepping = NULL;
		job->job = JOB_DONE;
		if (job->is_left)
			add_returned(job);
		pthread_cond_broadcast(&pool.changed);
	}
	return cursor || job;
}

/* With the lock held. Cursors in use go on without a connection: to an error. */
static void end_reading(void)
{
	for (struct store_cursor *job = pool.first_job; job; job = job->next_job)
		job->job = JOB_REFUSED;
	pool.first_job = pool.last_job = NULL;
	while (pool.returned) {
		struct store_cursor *cursor = pool.returned;

		pool.returned = cursor->next;
		count_out(cursor);
		destroy(cursor);
	}
	for (struct store_cursor *cursor = pool.remote; cursor; cursor = cursor->after)
		close_connection(cursor);
	close_idle(true, false);
	pool.runs = false;
	pthread_cond_broadcast(&pool.changed);
}

static void *reading_main(void *unused)
{
	struct waiting waiting;

	(void)unused;
	pthread_setname_np(pthread_self(), "queryprof");
	sampler_exclude_thread();
	pool.cpu_ns = 0;
	pthread_mutex_lock(&pool.lock);
	while (!pool.ending) {
		if (serve_one())
			continue;
		waiting = waiting_begin_ms(IDLE_MS);
		if (!wait_until(&pool.requested, &waiting) && !pool.remote && !pool.first_job)
			break;
	}
	end_reading();
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

void pool_start(void)
{
	pthread_mutex_lock(&pool.lock);
	if (!pool.runs) {
		if (pool.has_thread)
			pthread_join(pool.thread, NULL); /* at its very end */
		pool.ending = false;
		pool.has_thread = pool.runs = !control_make_thread(&pool.thread, reading_main);
	}
	pthread_mutex_unlock(&pool.lock);
}

bool pool_end(int timeout_ms)
{
	struct waiting waiting = waiting_begin_ms(timeout_ms);
	bool ended;

	pthread_mutex_lock(&pool.lock);
	pool.ending = true;
	if (pool.stepping)
		sqlite3_interrupt(pool.stepping);
	pthread_cond_signal(&pool.requested);
	while (pool.runs && wait_until(&pool.changed, &waiting))
		;
	ended = !pool.runs;
	pthread_mutex_unlock(&pool.lock);
	if (ended && pool.has_thread) {
		pthread_join(pool.thread, NULL);
		pool.has_thread = false;
	}
	return ended;
}

bool pool_has_thread(void)
{
	bool have;

	pthread_mutex_lock(&pool.lock);
	have = pool.runs;
	pthread_mutex_unlock(&pool.lock);
	return have;
}
