/*
 * Reading: each cursor has a connection to itself. Connections go back to a small
 * pool with their statement still prepared, so that the same question asked again
 * (as a join does, row by row) costs no parsing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/control.h"

#define IDLE_MAX 4

struct store_cursor {
	sqlite3 *db;
	sqlite3_stmt *statement;
	char *sql;
	uint64_t epoch; /* of the file; 0: the empty stand-in */
	char *error;    /* of the newest step */
	uint64_t forks; /* when it was opened: a parent's cursor is not ours to touch */
	struct store_cursor *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct store_cursor *idle;
	unsigned idle_count, busy_count;
	unsigned pauses; /* no new cursors */
	uint64_t forks;  /* behind us; relaxed atomic */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* --- the pool ------------------------------------------------------------------------ */

static void destroy(struct store_cursor *cursor)
{
	sqlite3_finalize(cursor->statement);
	sqlite3_close(cursor->db);
	free(cursor->sql);
	free(cursor->error);
	free(cursor);
}

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
	cursor->next = NULL;
	pool.idle_count--;
	return cursor;
}

static struct store_cursor *take(const char *sql, uint64_t epoch)
{
	struct store_cursor *cursor;

	pthread_mutex_lock(&pool.lock);
	while (pool.pauses)
		pthread_cond_wait(&pool.changed, &pool.lock);
	pool.busy_count++;
	cursor = take_idle(sql, epoch);
	pthread_mutex_unlock(&pool.lock);
	return cursor;
}

static bool is_foreign(const struct store_cursor *cursor)
{
	return cursor->forks != __atomic_load_n(&pool.forks, __ATOMIC_RELAXED);
}

static void give_back(struct store_cursor *cursor, bool usable)
{
	bool keep;

	pthread_mutex_lock(&pool.lock);
	keep = usable && cursor && pool.idle_count < IDLE_MAX && !pool.pauses && cursor->epoch == control_epoch();
	if (keep) {
		cursor->next = pool.idle;
		pool.idle = cursor;
		pool.idle_count++;
	}
	pthread_mutex_unlock(&pool.lock);
	/* Closed before it counts as closed: a fork waits for that. */
	if (!keep && cursor)
		destroy(cursor);
	pthread_mutex_lock(&pool.lock);
	pool.busy_count--;
	pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

/* With the lock held. */
static void close_idle(void)
{
	while (pool.idle) {
		struct store_cursor *cursor = pool.idle;

		pool.idle = cursor->next;
		destroy(cursor);
	}
	pool.idle_count = 0;
}

void readers_close_idle(void)
{
	pthread_mutex_lock(&pool.lock);
	close_idle();
	pthread_mutex_unlock(&pool.lock);
}

bool readers_pause(int timeout_ms)
{
	struct timespec deadline;
	bool quiet;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_nsec += timeout_ms * 1000000l;
	deadline.tv_sec += deadline.tv_nsec / 1000000000;
	deadline.tv_nsec %= 1000000000;
	pthread_mutex_lock(&pool.lock);
	pool.pauses++;
	while (pool.busy_count
	       && pthread_cond_timedwait(&pool.changed, &pool.lock, &deadline) != ETIMEDOUT)
		;
	quiet = !pool.busy_count;
	close_idle();
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
	/* Cursors that were busy are the parent's: left alone, never closed. */
	pool.busy_count = 0;
	pool.pauses = 0;
	__atomic_fetch_add(&pool.forks, 1, __ATOMIC_RELAXED);
	pthread_cond_init(&pool.changed, NULL);
	pthread_mutex_unlock(&pool.lock);
}

/* --- cursors --------------------------------------------------------------------------- */

static struct store_cursor *open_cursor(const char *path, uint64_t epoch, char **error)
{
	struct store_cursor *cursor = calloc(1, sizeof *cursor);

	if (!cursor) {
		*error = database_sentence("no memory for reading the trace log");
		return NULL;
	}
	cursor->epoch = epoch;
	cursor->forks = __atomic_load_n(&pool.forks, __ATOMIC_RELAXED);
	if (database_open_reader(path, &cursor->db, error)) {
		free(cursor);
		return NULL;
	}
	return cursor;
}

static bool prepare(struct store_cursor *cursor, const char *sql, char **error)
{
	if (cursor->sql && !strcmp(cursor->sql, sql))
		return true;
	sqlite3_finalize(cursor->statement);
	cursor->statement = NULL;
	free(cursor->sql);
	cursor->sql = strdup(sql);
	if (cursor->sql
	    && sqlite3_prepare_v3(cursor->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &cursor->statement, NULL) == SQLITE_OK
	    && cursor->statement)
		return true;
	*error = cursor->sql ? database_error(cursor->db, "trace log") : database_sentence("no memory");
	return false;
}

struct store_cursor *store_select(const char *sql, char **error)
{
	struct store_cursor *cursor;
	uint64_t epoch;
	char *path;
	bool prepared;

	*error = NULL;
	if (!control_reading_path(&path, &epoch, error))
		return NULL;
	cursor = take(sql, epoch);
	if (!cursor)
		cursor = open_cursor(path, epoch, error);
	free(path);
	prepared = cursor && prepare(cursor, sql, error);
	if (!prepared) {
		give_back(cursor, false);
		return NULL;
	}
	return cursor;
}

void store_bind_int64(struct store_cursor *cursor, int index, int64_t value)
{
	sqlite3_bind_int64(cursor->statement, index, value);
}

void store_bind_double(struct store_cursor *cursor, int index, double value)
{
	sqlite3_bind_double(cursor->statement, index, value);
}

void store_bind_text(struct store_cursor *cursor, int index, const char *text, size_t size)
{
	sqlite3_bind_text64(cursor->statement, index, text, size, SQLITE_TRANSIENT, SQLITE_UTF8);
}

void store_bind_null(struct store_cursor *cursor, int index)
{
	sqlite3_bind_null(cursor->statement, index);
}

int store_step(struct store_cursor *cursor)
{
	int code = is_foreign(cursor) ? SQLITE_ABORT : sqlite3_step(cursor->statement);

	if (code == SQLITE_ROW)
		return 1;
	if (code == SQLITE_DONE)
		return 0;
	free(cursor->error);
	cursor->error = is_foreign(cursor) ? database_sentence("trace log: opened before a fork")
		: database_error(cursor->db, "trace log");
	return -1;
}

const char *store_cursor_error(const struct store_cursor *cursor)
{
	return cursor->error ? cursor->error : "";
}

enum store_type store_column_type(struct store_cursor *cursor, int column)
{
	switch (sqlite3_column_type(cursor->statement, column)) {
	case SQLITE_INTEGER:
		return STORE_INT64;
	case SQLITE_FLOAT:
		return STORE_DOUBLE;
	case SQLITE_TEXT:
		return STORE_TEXT;
	case SQLITE_BLOB:
		return STORE_BLOB;
	default:
		return STORE_NULL;
	}
}

int64_t store_column_int64(struct store_cursor *cursor, int column)
{
	return sqlite3_column_int64(cursor->statement, column);
}

double store_column_double(struct store_cursor *cursor, int column)
{
	return sqlite3_column_double(cursor->statement, column);
}

const char *store_column_bytes(struct store_cursor *cursor, int column, size_t *size)
{
	const char *bytes = sqlite3_column_type(cursor->statement, column) == SQLITE_BLOB
		? sqlite3_column_blob(cursor->statement, column)
		: (const char *)sqlite3_column_text(cursor->statement, column);

	*size = (size_t)sqlite3_column_bytes(cursor->statement, column);
	return bytes;
}

void store_close(struct store_cursor *cursor)
{
	if (!cursor || is_foreign(cursor))
		return;
	sqlite3_reset(cursor->statement);
	sqlite3_clear_bindings(cursor->statement);
	give_back(cursor, true);
}
