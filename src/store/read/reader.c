/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c explains which thread does the work.
 */
#include "store/read/reader.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/control/control.h"
#include "store/file/database.h"
#include "store/read/pool.h"

#define LIMIT_MS 60000

BOUNDED_WAIT_DEFINE(for_file, "a reader of the tables: the flusher has opened the file", BOUND_OF_CALLER,
                    "the flusher");

/* --- what is done on the file ---------------------------------------------------------- */

static void fail(struct store_cursor *cursor, char *sentence)
{
	free(cursor->error);
	cursor->error = sentence;
}

/* Opens and prepares, or sets an error. */
static void set_up(struct store_cursor *cursor)
{
	if (!cursor->db) {
		if (database_open_reader(cursor->path, &cursor->db, &cursor->error))
			return;
		pool_watch_progress(cursor);
	}
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
		fail(cursor, text_format("trace log: the store has ended"));
	else if (cursor->code == SQLITE_DONE)
		sqlite3_reset(cursor->statement);
	else if (cursor->code == SQLITE_NOMEM)
		fail(cursor, text_format("trace log: no memory"));
	else if (cursor->code != SQLITE_ROW)
		fail(cursor, database_error(cursor->db, "trace log"));
}

/* --- cursors --------------------------------------------------------------------------- */

/* False: cursor->error or cursor->refusal has the reason. */
static bool prepare(struct store_cursor *cursor, const char *sql)
{
	if (cursor->sql && !strcmp(cursor->sql, sql))
		return true;
	free(cursor->sql);
	cursor->sql = strdup(sql);
	if (!cursor->sql)
		fail(cursor, text_format("no memory"));
	else if (pool_run(cursor, set_up))
		return !cursor->error;
	return false;
}

struct store_cursor *store_select(const char *sql, const struct store_wait *wait, char **error)
{
	static const struct store_wait otherwise = { .timeout_ms = LIMIT_MS };
	struct waiting waiting = waiting_begin(&for_file, wait ? wait : &otherwise);
	struct store_cursor *cursor;
	uint64_t epoch = 0;
	char *path = NULL;

	*error = NULL;
	if (!control_reading_path(&path, &epoch, &waiting, error))
		return NULL;
	cursor = pool_acquire(sql, path, epoch);
	if (!cursor) {
		*error = text_format("out of memory for reading the trace log");
		return NULL;
	}
	cursor->wait = wait ? *wait : otherwise;
	rows_begin(&cursor->rows);
	cursor->code = SQLITE_ROW;
	fail(cursor, NULL);
	if (prepare(cursor, sql))
		return cursor;
	*error = strdup(store_cursor_error(cursor));
	pool_give_back(cursor);
	return NULL;
}

#define BIND(cursor, call)                                                                                   \
	do {                                                                                                 \
		if (pool_hold(cursor)) {                                                                     \
			call;                                                                                \
			pool_release();                                                                      \
		}                                                                                            \
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
	if (pool_is_foreign(cursor)) {
		fail(cursor, text_format("trace log: opened before a fork"));
		return -1;
	}
	if (cursor->refusal)
		return -1;
	if (rows_advance(&cursor->rows))
		return 1;
	if (cursor->code == SQLITE_ROW) {
		if (!pool_run(cursor, fetch))
			return -1;
		if (rows_advance(&cursor->rows))
			return 1;
	}
	return cursor->code == SQLITE_DONE ? 0 : -1;
}

const char *store_cursor_error(const struct store_cursor *cursor)
{
	if (cursor->refusal)
		return cursor->refusal;
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
	if (cursor && !pool_is_foreign(cursor))
		pool_give_back(cursor);
}
