/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each cursor has its own connection. Connections return to a small pool with their statement still prepared,
 * so repeating a request (as a join does, row by row) costs no parsing.
 *
 * To the host's threads, a descriptor of the trace file is a number that means nothing, or another file
 * (descriptors.h), and SQLite shares descriptors of one file between connections. So a separate thread, the
 * reading thread, opens, reads and closes files. The flusher creates it when it is first needed, and it ends
 * some seconds after its last cursor. It does one job after the other, so a cursor that needs long for its
 * next row delays others. Such cursors are "remote". A cursor on the empty stand-in, which is in memory, is
 * not.
 *
 * An owner that no longer waits for its job removes the job from the queue, or interrupts the statement. A
 * call that hangs in the file system cannot be interrupted; then the cursor belongs to the reading thread
 * until the job ends.
 */
#include "store/read/pool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "collect/ring_reader.h"
#include "store/control/control.h"
#include "store/file/descriptors.h"
#include "store/control/counters.h"
#include "timers/threads.h"

#define IDLE_MAX 4

BOUNDED_WAIT_DEFINE(for_job, "a reader of the tables: the reading thread, as long as nothing is read",
                    BOUND_OF_CALLER,
                    "the reading thread, with its job; every 5 ms the caller looks for an interrupt");
/* An interrupted statement ends within this time, unless the disk does not respond. */
BOUNDED_WAIT_DEFINE(for_interrupt, "a reader of the tables: a statement that was interrupted", BOUND_MS(100),
                    "the reading thread, with its job");
/* A fork() waits no longer than this for all readers together. */
BOUNDED_WAIT_DEFINE(for_fork, "a reader of the tables: a fork() of another thread", NS_PER_S,
                    "the thread that forks");
BOUNDED_WAIT_DEFINE(for_readers, "fork(): readers of the tables", BOUND_MS(100), "each reader that ends");
BOUNDED_WAIT_DEFINE(for_reading_thread, "the flusher: the end of the reading thread", NS_PER_S,
                    "the reading thread");
BOUNDED_WAIT_DEFINE(for_jobs, "the reading thread: jobs", BOUND_MS(5000),
                    "the reader that comes; the flusher, to end it");

/* Instructions of SQLite between two reports of progress: some 100 us. */
#define PROGRESS_STEPS 10000

static struct {
	struct mutex lock;
	struct condition changed;
	struct store_cursor *idle;
	unsigned idle_count, busy_count;
	unsigned pauses; /* while it is not 0, there are no new cursors */
	uint64_t forks;  /* the number of forks that led to this process; relaxed atomic */

	/* The reading thread. */
	struct condition requested;
	struct store_thread thread;
	bool has_thread; /* it must be joined */
	bool runs, ending;
	uint64_t cpu_ns; /* that it has used and reported */
	struct store_cursor *first_job, *last_job, *running;
	sqlite3 *stepping;             /* the connection whose statement the current job steps */
	uint64_t progress;             /* a counter of progress of all jobs; relaxed atomic */
	struct store_cursor *returned; /* before their end: to be reset or closed */
	struct store_cursor *remote;
} pool;
LOCK_DEFINE_GROUPED(pool, LOCK_STORE_POOL, &pool.lock);

REQUIRES(pool.lock) static bool wait_until(struct condition *condition, struct waiting *waiting)
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

static bool is_running(const struct store_cursor *cursor)
{
	return cursor->job == JOB_QUEUED || cursor->job == JOB_RUNNING;
}

REQUIRES(pool.lock) static void add_job(struct store_cursor *cursor)
{
	cursor->job = JOB_QUEUED;
	cursor->next_job = NULL;
	*(pool.first_job ? &pool.last_job->next_job : &pool.first_job) = cursor;
	pool.last_job = cursor;
	condition_change(&pool.requested);
}

/* For a job that has not begun. */
REQUIRES(pool.lock) static void remove_job(struct store_cursor *cursor)
{
	struct store_cursor *before = NULL;

	for (struct store_cursor *at = pool.first_job; at != cursor; at = at->next_job)
		before = at;
	*(before ? &before->next_job : &pool.first_job) = cursor->next_job;
	if (pool.last_job == cursor)
		pool.last_job = before;
	cursor->job = JOB_NONE;
}

/* False: the owner gives up, or there was no progress within its limit. */
REQUIRES(pool.lock) static bool await_job(struct store_cursor *cursor)
{
	struct waiting waiting = waiting_begin(&for_job, &cursor->wait);
	uint64_t seen = 0, progress;

	while (is_running(cursor)) {
		if (wait_until(&pool.changed, &waiting) || !is_running(cursor))
			continue;
		progress = __atomic_load_n(&pool.progress, __ATOMIC_RELAXED);
		if (cursor->job != JOB_RUNNING || !waiting_is_over(&waiting) || progress == seen)
			return false;
		seen = progress;
		waiting = waiting_begin(&for_job, &cursor->wait);
	}
	return true;
}

REQUIRES(pool.lock) static void give_up_job(struct store_cursor *cursor)
{
	struct waiting grace = waiting_begin_ms(&for_interrupt, INT_MAX);

	if (cursor->job == JOB_QUEUED)
		remove_job(cursor);
	if (pool.running == cursor && pool.stepping)
		sqlite3_interrupt(pool.stepping);
	while (is_running(cursor) && wait_until(&pool.changed, &grace))
		;
}

static void refuse(struct store_cursor *cursor, bool was_started)
{
	const struct store_wait *wait = &cursor->wait;

	if (!was_started)
		set_refusal(cursor, text_format("trace log: the store has ended, or has no reading thread"));
	else if (wait->give_up && wait->give_up(wait->context))
		set_refusal(cursor, text_format("trace log: reading was interrupted"));
	else
		set_refusal(cursor,
		            text_format("trace log: no row was read within the limit of %d ms: the reading "
		                        "thread is busy with another statement, or the disk does not respond",
		                        wait->timeout_ms));
}

/* Asks the flusher to create the reading thread, and waits for that. */
static void start_reading(struct waiting *waiting)
{
	bool in_time = true;

	control_lock();
	if (store_control.state == STORE_ELSEWHERE) {
		pool_start();
	} else if (control_start_thread()) {
		store_control.reading_wanted = true;
		ring_wake(store_control.ring);
		while (in_time && store_control.reading_wanted && control_is_live())
			in_time = control_wait(waiting);
	}
	control_unlock();
}

bool pool_run(struct store_cursor *cursor, void (*work)(struct store_cursor *cursor))
{
	struct waiting waiting = waiting_begin(&for_job, &cursor->wait);
	bool started, done = false;

	if (!cursor->is_remote) {
		work(cursor);
		return true;
	}
	lock_acquire(&pool.lock);
	if (!pool.runs) {
		lock_release(&pool.lock);
		start_reading(&waiting);
		lock_acquire(&pool.lock);
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
	lock_release(&pool.lock);
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

NOT_ANALYSED bool pool_hold(struct store_cursor *cursor)
{
	if (pool_is_foreign(cursor))
		return false;
	lock_acquire(&pool.lock);
	if (!is_running(cursor) && cursor->statement)
		return true;
	lock_release(&pool.lock);
	return false;
}

NOT_ANALYSED void pool_release(void)
{
	lock_release(&pool.lock);
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

/* An idle connection, if possible with the same statement; it is counted as busy. */
static struct store_cursor *acquire_idle(const char *sql, const char *path, uint64_t epoch)
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

REQUIRES(pool.lock) static void count_in(struct store_cursor *cursor)
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

REQUIRES(pool.lock) static void count_out(struct store_cursor *cursor)
{
	pool.busy_count--;
	condition_change(&pool.changed);
	if (cursor->is_remote) {
		if (cursor->after)
			cursor->after->before = cursor->before;
		*(cursor->before ? &cursor->before->after : &pool.remote) = cursor->after;
	}
}

struct store_cursor *pool_acquire(const char *sql, char *path, uint64_t epoch)
{
	struct waiting waiting = waiting_begin_ms(&for_fork, INT_MAX);
	struct store_cursor *cursor;

	lock_acquire(&pool.lock);
	while (pool.pauses && wait_until(&pool.changed, &waiting))
		;
	cursor = acquire_idle(sql, path, epoch);
	if (!cursor && (cursor = calloc(1, sizeof(*cursor)))) {
		cursor->path = path;
		path = NULL;
		cursor->epoch = epoch;
		cursor->forks = __atomic_load_n(&pool.forks, __ATOMIC_RELAXED);
		cursor->is_remote = cursor->path != NULL;
	}
	if (cursor) {
		/* Its last owner abandoned it. */
		cursor->is_abandoned = false;
		cursor->job = JOB_NONE;
		set_refusal(cursor, NULL);
		count_in(cursor);
	}
	lock_release(&pool.lock);
	free(path);
	return cursor;
}

REQUIRES(pool.lock) static bool can_be_kept(const struct store_cursor *cursor)
{
	return cursor->statement && pool.idle_count < IDLE_MAX && !pool.pauses &&
	       cursor->epoch == control_epoch();
}

/* Returns it to the pool, or closes it. It counts as closed only after that, because a fork waits for it. The
 * lock is released while the connection is closed. */
REQUIRES(pool.lock) static void commit(struct store_cursor *cursor)
{
	if (can_be_kept(cursor)) {
		count_out(cursor);
		cursor->next = pool.idle;
		pool.idle = cursor;
		pool.idle_count++;
		return;
	}
	lock_release(&pool.lock);
	close_connection(cursor);
	lock_acquire(&pool.lock);
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

/* The remote ones, the direct ones, or both. */
REQUIRES(pool.lock) static void close_idle(bool remote, bool direct)
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
	condition_change(&pool.changed);
}

void pool_close_idle(void)
{
	lock_acquire(&pool.lock);
	close_idle(true, true);
	lock_release(&pool.lock);
}

NOT_ANALYSED bool pool_pause(bool waits)
{
	struct waiting waiting = waiting_begin_ms(&for_readers, waits ? INT_MAX : 0);
	bool quiet;

	lock_acquire(&pool.lock);
	pool.pauses++;
	close_idle(false, true);
	condition_change(&pool.requested);
	while ((pool.busy_count || pool.idle) && wait_until(&pool.changed, &waiting))
		;
	close_idle(false, true);
	quiet = !pool.busy_count && !pool.idle;
	/* Held until pool_resume(), so no other thread is inside at a fork. */
	return quiet;
}

NOT_ANALYSED void pool_resume(void)
{
	pool.pauses--;
	condition_change(&pool.changed);
	lock_release(&pool.lock);
}

NOT_ANALYSED void pool_reset_in_child(void)
{
	/* Cursors in use belong to the parent: they are ignored, never closed. */
	pool.busy_count = pool.idle_count = 0;
	pool.idle = pool.returned = pool.remote = NULL;
	pool.stepping = NULL;
	pool.first_job = pool.last_job = pool.running = NULL;
	pool.has_thread = pool.runs = pool.ending = false;
	pool.pauses = 0;
	__atomic_fetch_add(&pool.forks, 1, __ATOMIC_RELAXED);
	lock_release(&pool.lock);
}

REQUIRES(pool.lock) static void add_returned(struct store_cursor *cursor)
{
	cursor->next = pool.returned;
	pool.returned = cursor;
	condition_change(&pool.requested);
}

/* The owner's thread may not close the cursor. The thread that may resets it and ends its snapshot, if it has
 * one. */
void pool_give_back(struct store_cursor *cursor)
{
	if (!cursor->is_remote)
		make_ready(cursor);
	lock_acquire(&pool.lock);
	if (is_running(cursor)) {
		cursor->is_abandoned = true;
	} else if (cursor->is_remote && cursor->code == SQLITE_DONE && can_be_kept(cursor)) {
		make_ready(cursor);
		commit(cursor);
	} else if (!cursor->is_remote || !cursor->db) {
		commit(cursor);
	} else {
		add_returned(cursor);
	}
	lock_release(&pool.lock);
}

/* --- the reading thread ---------------------------------------------------------------- */

/* Does one job, if there is any. */
REQUIRES(pool.lock) static bool serve_one(void)
{
	struct store_cursor *cursor = pool.returned;
	struct store_cursor *job = pool.first_job;

	if (pool.pauses && pool.idle) {
		close_idle(true, false);
	} else if (cursor) {
		pool.returned = cursor->next;
		lock_release(&pool.lock);
		make_ready(cursor);
		lock_acquire(&pool.lock);
		commit(cursor);
	} else if (job) {
		pool.first_job = job->next_job;
		pool.running = job;
		pool.stepping = job->statement ? job->db : NULL;
		job->job = JOB_RUNNING;
		note_progress(NULL);
		lock_release(&pool.lock);
		job->work(job);
		store_count_cpu_time(STORE_READER_CPU_TIME_NS, &pool.cpu_ns);
		lock_acquire(&pool.lock);
		pool.running = NULL;
		pool.stepping = NULL;
		job->job = JOB_DONE;
		if (job->is_abandoned)
			add_returned(job);
		condition_change(&pool.changed);
	}
	return cursor || job;
}

/* Cursors in use continue without a connection, and return an error. */
REQUIRES(pool.lock) static void end_reading(void)
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
	condition_change(&pool.changed);
}

static void reading_main(void)
{
	struct waiting waiting;
	int error;

	pool.cpu_ns = 0;
	/* In other states the flusher created this thread, whose descriptor table is not the host's. */
	error = store_control.state == STORE_ELSEWHERE ? descriptors_separate() : 0;
	lock_acquire(&pool.lock);
	pool.ending |= error != 0;
	while (!pool.ending) {
		if (serve_one())
			continue;
		waiting = waiting_begin_ms(&for_jobs, INT_MAX);
		if (!wait_until(&pool.requested, &waiting) && !pool.remote && !pool.first_job)
			break;
	}
	end_reading();
	lock_release(&pool.lock);
}

void pool_start(void)
{
	lock_acquire(&pool.lock);
	if (!pool.runs) {
		if (pool.has_thread)
			control_join_thread(&pool.thread);
		pool.ending = false;
		pool.has_thread = pool.runs = !control_make_thread(&pool.thread, reading_main);
	}
	lock_release(&pool.lock);
}

bool pool_end(void)
{
	struct waiting waiting = waiting_begin_ms(&for_reading_thread, INT_MAX);
	bool ended;

	lock_acquire(&pool.lock);
	pool.ending = true;
	if (pool.stepping)
		sqlite3_interrupt(pool.stepping);
	condition_change(&pool.requested);
	while (pool.runs && wait_until(&pool.changed, &waiting))
		;
	ended = !pool.runs;
	lock_release(&pool.lock);
	if (ended && pool.has_thread) {
		control_join_thread(&pool.thread);
		pool.has_thread = false;
	}
	return ended;
}

bool pool_has_thread(void)
{
	bool have;

	lock_acquire(&pool.lock);
	have = pool.runs;
	lock_release(&pool.lock);
	return have;
}
