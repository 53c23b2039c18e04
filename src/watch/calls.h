/*
 * What SQLite does for the host without a statement, and may take long: backups, blobs
 * that are read and written piecemeal, checkpoints, serialization, closing. Each is a
 * run as a statement's is, its text the function that is called:
 *
 *   sqlite3_backup_step(main)           from sqlite3_backup_init() to _finish()
 *   sqlite3_blob_open(main.docs.body)   from there to sqlite3_blob_close()
 *   sqlite3_wal_checkpoint_v2(main)     as sqlite3_wal_checkpoint(main), _serialize(main)
 *   sqlite3_close()                     if it takes 1 ms: what is rolled back, the last
 *                                       checkpoint
 *
 * Inside a statement's step they are part of the statement, as all is that runs there.
 */
#ifndef QUERYPROF_WATCH_CALLS_H
#define QUERYPROF_WATCH_CALLS_H

#include "watch/queries.h"

struct call_text {
	const char *function;
	const char *schema; /* NULL: main */
	const char *table, *column;
};

/* Around a call: what it does on `db` belongs to a new run. Either calls_end() follows
 * with the result, and the run ends, or calls_opened(): what was made, a backup or a
 * blob, carries on with the run; NULL: the call has failed with `rc`. */
void calls_begin(struct query_step *step, sqlite3 *db, const struct call_text *text, const void *frame);
void calls_end(const struct query_step *step, int rc);
void calls_opened(const struct query_step *step, const void *handle, int rc);

/* The same for sqlite3_exec() of a library whose own calls go by us. calls_end() follows. */
void calls_begin_exec(struct query_step *step, sqlite3 *db, const char *sql, const void *frame);

/* Around a call that works on a handle: calls_used() must follow or, with the handle
 * gone, calls_end(). */
void calls_use(struct query_step *step, const void *handle, const void *frame);
void calls_used(const struct query_step *step);

/* Around the closing of a connection, with which its session goes. */
struct closing_call {
	struct query_step step;
	struct session session; /* stands for the one that goes */
	char *database;
};
void calls_close(struct closing_call *closing, sqlite3 *db, const void *frame);
void calls_closed(struct closing_call *closing, int rc);

#endif
