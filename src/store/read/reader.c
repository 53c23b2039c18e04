/*
 * Reading: each cursor has a connection to itself. Connections go back to a small pool with
 * their statement still prepared, so that the same question asked again (as a join does, row
 * by row) costs no parsing.
 *
 * A descriptor of the trace file is a number that means nothing, or something else, to the
 * host's threads (descriptors.h), and SQLite shares descriptors of one file between
 * connections. So what opens, reads or closes the file runs on the reading thread, which the
 * flusher makes when it is first needed, and which ends some seconds after its last cursor.
 * It does one thing after the other: a cursor that is long in coming to its next row lets
 * others wait. Such a cursor is "remote". A cursor on the empty stand-in, in memory, is not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/sampler.h"
#include "store/control.h"
#include "store/read/rows.h"

#define IDLE_MAX 4
#define IDLE_MS 5000

struct store_cursor {
	sqlite3 *db; /* NULL: not open yet, or closed under us when the store ended */
	sqlite3_stmt *statement;
	char *sql;
	char *path;     /* of the file; NULL: the empty stand-in */
	uint64_t epoch; /* of the file */
	struct rows rows;
	int code;       /* of the statement: SQLITE_ROW while it goes on */
	char *error;    /* of the newest step */
	uint64_t forks; /* when it was opened: a parent's cursor is not ours to touch */
	bool is_remote;
	struct store_cursor *next;           /* of the idle ones, or of those given back */
	struct store_cursor *before, *after; /* of the remote ones that are in use */
};

/* Something for the reading thread to do, on the stack of who waits for it. */
struct job {
	struct store_cursor *cursor;
	void (*work)(struct store_cursor *cursor);
	bool done, refused;
	struct job *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct store_cursor *idle;
	unsigned idle_count, busy_count;
	unsigned pauses; /* no new cursors */
	uint64_t forks;  /* behind us; relaxed atomic */

	/* The reading thread. */
	pthread_cond_t asked;
	pthread_t thread;
	bool has_thread; /* to be joined */
	bool runs, ending;
	struct job *first_job, *last_job;
	sqlite3 *stepping;             /* what a step of it is under way in */
	struct store_cursor *returned; /* given back before their end: to be made ready, or closed */
	struct store_cursor *remote;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.asked = PTHREAD_COND_INITIALIZER,
};

/* With the lock held; false once the deadline has passed. */
static bool wait_until(pthread_cond_t *condition, const struct timespec *deadline)
{
	return pthread_cond_clockwait(condition, &pool.lock, CLOCK_MONOTONIC, deadline) != ETIMEDOUT;
}

/* --- who works on the file ------------------------------------------------------------ */

/* Has it done where it may be done, and waits. False: refused, the store has ended or
 * no thread can be had. */
static bool run(struct store_cursor *cursor, void (*work)(struct store_cursor *cursor))
{
	struct job job = { .cursor = cursor, .work = work };
	int cancel;

	if (!cursor->is_remote) {
		work(cursor);
		return true;
	}
	/* The job is on this stack. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&pool.lock);
	if (!pool.runs) {
		pthread_mutex_unlock(&pool.lock);
		control_start_reading();
		pthread_mutex_lock(&pool.lock);
	}
	if (pool.runs && !pool.ending) {
		*(pool.first_job ? &pool.last_job->next : &pool.first_job) = &job;
		pool.last_job = &job;
		pthread_cond_signal(&pool.asked);
		while (!job.done)
			pthread_cond_wait(&pool.changed, &pool.lock);
	} else {
		job.refused = true;
	}
	pthread_mutex_unlock(&pool.lock);
	pthread_setcancelstate(cancel, NULL);
	return !job.refused;
}

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
	free(cursor);
}

/* --- the pool ------------------------------------------------------------------------ */

/* An idle one, with the same statement if there is such; counted as busy. */
static struct store_cursor *take_idle(const char *sql, uint64_t epoch)
{
	struct store_cursor **best = NULL, *cursor;

	for (struct store_cursor **at = &pool.idle; *at; at = &(*at)->next) {
		if ((*at)->epoch != epoch)
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

static bool is_foreign(const struct store_cursor *cursor)
{
	return cursor->forks != __atomic_load_n(&pool.forks, __ATOMIC_RELAXED);
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

/* Takes over `path`. NULL: no memory. */
static struct store_cursor *take(const char *sql, char *path, uint64_t epoch)
{
	struct store_cursor *cursor;

	pthread_mutex_lock(&pool.lock);
	while (pool.pauses)
		pthread_cond_wait(&pool.changed, &pool.lock);
	cursor = take_idle(sql, epoch);
	if (!cursor && (cursor = calloc(1, sizeof *cursor))) {
		cursor->path = path;
		path = NULL;
		cursor->epoch = epoch;
		cursor->forks = __atomic_load_n(&pool.forks, __ATOMIC_RELAXED);
		cursor->is_remote = epoch != 0;
	}
	if (cursor)
		count_in(cursor);
	pthread_mutex_unlock(&pool.lock);
	free(path);
	return cursor;
}

static bool can_be_kept(const struct store_cursor *cursor)
{
	return cursor->statement && cursor->sql && pool.idle_count < IDLE_MAX && !pool.pauses &&
	       cursor->epoch == control_epoch();
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

void readers_close_idle(void)
{
	pthread_mutex_lock(&pool.lock);
	close_idle(true, true);
	pthread_mutex_unlock(&pool.lock);
}

bool readers_pause(int timeout_ms)
{
	struct timespec deadline = control_deadline(timeout_ms);
	bool quiet;

	pthread_mutex_lock(&pool.lock);
	pool.pauses++;
	close_idle(false, true);
	pthread_cond_signal(&pool.asked);
	while ((pool.busy_count || pool.idle) && wait_until(&pool.changed, &deadline))
		;
	close_idle(false, true);
	quiet = !pool.busy_count && !pool.idle;
	/* Held until readers_resume(): nobody is in the middle of anything at a fork. */
	return quiet;
}

void readers_resume(void)
{
	pool.pauses--;
	pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

void readers_reset_in_child(void)
{
	/* Cursors that were in use are the parent's: left alone, never closed. */
	pool.busy_count = pool.idle_count = 0;
	pool.idle = pool.returned = pool.remote = NULL;
	pool.stepping = NULL;
	pool.first_job = pool.last_job = NULL;
	pool.has_thread = pool.runs = pool.ending = false;
	pool.pauses = 0;
	__atomic_fetch_add(&pool.forks, 1, __ATOMIC_RELAXED);
	pthread_cond_init(&pool.changed, NULL);
	pthread_cond_init(&pool.asked, NULL);
	pthread_mutex_unlock(&pool.lock);
}

/* --- what is done on the file ---------------------------------------------------------- */

static char *ended_sentence(void)
{
	return database_sentence("trace log: the store has ended, or has no thread for reading");
}

static void fail(struct store_cursor *cursor, char *sentence)
{
	free(cursor->error);
	cursor->error = sentence;
}

/* Opened and prepared; or an error. */
static void set_up(struct store_cursor *cursor)
{
	if (!cursor->db && database_open_reader(cursor->path, &cursor->db, &cursor->error))
		return;
	sqlite3_finalize(cursor->statement);
	cursor->statement = NULL;
	if (sqlite3_prepare_v3(cursor->db, cursor->sql, -1, SQLITE_PREPARE_PERSISTENT, &cursor->statement,
	                       NULL) ||
	    !cursor->statement)
		fail(cursor, database_error(cursor->db, "trace log"));
}

static void fetch(struct store_cursor *cursor)
{
	cursor->code = cursor->statement ? rows_fetch(&cursor->rows, cursor->statement) : SQLITE_ABORT;
	if (!cursor->statement)
		fail(cursor, ended_sentence());
	else if (cursor->code == SQLITE_DONE)
		sqlite3_reset(cursor->statement);
	else if (cursor->code == SQLITE_NOMEM)
		fail(cursor, database_sentence("trace log: no memory"));
	else if (cursor->code != SQLITE_ROW)
		fail(cursor, database_error(cursor->db, "trace log"));
}

/* --- the reading thread ---------------------------------------------------------------- */

/* With the lock held: one thing that is to do. */
static bool serve_one(void)
{
	struct store_cursor *cursor = pool.returned;
	struct job *job = pool.first_job;

	if (pool.pauses && pool.idle) {
		close_idle(true, false);
	} else if (cursor) {
		pool.returned = cursor->next;
		pthread_mutex_unlock(&pool.lock);
		make_ready(cursor);
		pthread_mutex_lock(&pool.lock);
		settle(cursor);
	} else if (job) {
		pool.first_job = job->next;
		pool.stepping = job->work == fetch ? job->cursor->db : NULL;
		pthread_mutex_unlock(&pool.lock);
		job->work(job->cursor);
		pthread_mutex_lock(&pool.lock);
		pool.stepping = NULL;
		job->done = true;
		pthread_cond_broadcast(&pool.changed);
	}
	return cursor || job;
}

/* With the lock held. What is in use goes on without a connection: to an error. */
static void end_reading(void)
{
	for (struct job *job = pool.first_job; job; job = job->next)
		job->done = job->refused = true;
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
	struct timespec until;

	(void)unused;
	pthread_setname_np(pthread_self(), "queryprof");
	sampler_exclude_thread();
	pthread_mutex_lock(&pool.lock);
	while (!pool.ending) {
		if (serve_one())
			continue;
		until = control_deadline(IDLE_MS);
		if (!wait_until(&pool.asked, &until) && !pool.remote && !pool.first_job)
			break;
	}
	end_reading();
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

void readers_start(void)
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

bool readers_end(int timeout_ms)
{
	struct timespec deadline = control_deadline(timeout_ms);
	bool ended;

	pthread_mutex_lock(&pool.lock);
	pool.ending = true;
	if (pool.stepping)
		sqlite3_interrupt(pool.stepping);
	pthread_cond_signal(&pool.asked);
	while (pool.runs && wait_until(&pool.changed, &deadline))
		;
	ended = !pool.runs;
	pthread_mutex_unlock(&pool.lock);
	if (ended && pool.has_thread) {
		pthread_join(pool.thread, NULL);
		pool.has_thread = false;
	}
	return ended;
}

bool readers_have_thread(void)
{
	bool have;

	pthread_mutex_lock(&pool.lock);
	have = pool.runs;
	pthread_mutex_unlock(&pool.lock);
	return have;
}

/* --- cursors --------------------------------------------------------------------------- */

/* Given back by a thread that may not close it: it is made ready, and its snapshot let
 * go, by the one that may; unless there is nothing to let go. */
static void give_back(struct store_cursor *cursor)
{
	if (!cursor->is_remote)
		make_ready(cursor);
	pthread_mutex_lock(&pool.lock);
	if (cursor->is_remote && cursor->code == SQLITE_DONE && can_be_kept(cursor)) {
		make_ready(cursor);
		settle(cursor);
	} else if (!cursor->is_remote || !cursor->db) {
		settle(cursor);
	} else {
		cursor->next = pool.returned;
		pool.returned = cursor;
		pthread_cond_signal(&pool.asked);
	}
	pthread_mutex_unlock(&pool.lock);
}

struct store_cursor *store_select(const char *sql, char **error)
{
	struct store_cursor *cursor;
	uint64_t epoch;
	char *path;

	*error = NULL;
	if (!control_reading_path(&path, &epoch, error))
		return NULL;
	cursor = take(sql, path, epoch);
	if (!cursor) {
		*error = database_sentence("no memory for reading the trace log");
		return NULL;
	}
	rows_begin(&cursor->rows);
	cursor->code = SQLITE_ROW;
	fail(cursor, NULL);
	if (!cursor->sql || strcmp(cursor->sql, sql)) {
		free(cursor->sql);
		cursor->sql = strdup(sql);
		if (!cursor->sql)
			fail(cursor, database_sentence("no memory"));
		else if (!run(cursor, set_up))
			fail(cursor, ended_sentence());
		if (cursor->error) {
			*error = cursor->error;
			cursor->error = NULL;
			free(cursor->sql);
			cursor->sql = NULL; /* not to be found again */
			give_back(cursor);
			return NULL;
		}
	}
	return cursor;
}

/* The lock: the store may end meanwhile, and the statement with it. */
#define BIND(cursor, call)                                                                                   \
	do {                                                                                                 \
		pthread_mutex_lock(&pool.lock);                                                              \
		if ((cursor)->statement && !is_foreign(cursor))                                              \
			call;                                                                                \
		pthread_mutex_unlock(&pool.lock);                                                            \
	} while (0)

void store_bind_int64(struct store_cursor *cursor, int index, int64_t value)
{
	BIND(cursor, sqlite3_bind_int64(cursor->statement, index, value));
}

void store_bind_double(struct store_cursor *cursor, int index, double value)
{
	BIND(cursor, sqlite3_bind_double(cursor->statement, index, value));
}

void store_bind_text(struct store_cursor *cursor, int index, const char *text, size_t size)
{
	BIND(cursor,
	     sqlite3_bind_text64(cursor->statement, index, text, size, SQLITE_TRANSIENT, SQLITE_UTF8));
}

void store_bind_null(struct store_cursor *cursor, int index)
{
	BIND(cursor, sqlite3_bind_null(cursor->statement, index));
}

int store_step(struct store_cursor *cursor)
{
	if (is_foreign(cursor)) {
		fail(cursor, database_sentence("trace log: opened before a fork"));
		return -1;
	}
	if (rows_advance(&cursor->rows))
		return 1;
	if (cursor->code == SQLITE_ROW) {
		if (!run(cursor, fetch)) {
			cursor->code = SQLITE_ABORT;
			fail(cursor, ended_sentence());
		}
		if (rows_advance(&cursor->rows))
			return 1;
	}
	return cursor->code == SQLITE_DONE ? 0 : -1;
}

const char *store_cursor_error(const struct store_cursor *cursor)
{
	return cursor->error ? cursor->error : "";
}

enum store_type store_column_type(struct store_cursor *cursor, int column)
{
	return rows_type(&cursor->rows, column);
}

int64_t store_column_int64(struct store_cursor *cursor, int column)
{
	return rows_int64(&cursor->rows, column);
}

double store_column_double(struct store_cursor *cursor, int column)
{
	return rows_double(&cursor->rows, column);
}

const char *store_column_bytes(struct store_cursor *cursor, int column, size_t *size)
{
	return rows_text(&cursor->rows, column, size);
}

void store_close(struct store_cursor *cursor)
{
	if (cursor && !is_foreign(cursor))
		give_back(cursor);
}
