/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: what SQLite does for the host without a statement, and may take long: backups,
 * blobs that are read and written piecemeal, checkpoints, serialization, closing. Each is a
 * run as a statement's is, its text the function that is called:
 *
 *   sqlite3_backup_step(main)           from sqlite3_backup_init() to _finish()
 *   sqlite3_blob_open(main.docs.body)   from there to sqlite3_blob_close()
 *   sqlite3_wal_checkpoint_v2(main)     as sqlite3_wal_checkpoint(main), _serialize(main)
 *   sqlite3_close()                     if it takes 1 ms (what is rolled back, the last
 *                                       checkpoint), has samples, or fails
 *   sqlite3_mutex_enter()             waiting for the mutex of a connection that another thread has,
 *                                       outside of runs
 *
 * Inside a statement's step they are part of the statement, as all is that runs there. A
 * handle may outlive its connection's sqlite3_close_v2(): its run needs nothing of the
 * connection after it has begun.
 */
#pragma once

#include "sqlite/runs/run_call.h"

struct operation_text {
	const char *function;
	const char *schema; /* NULL: main */
	const char *table, *column;
};

/* Enclose a call whose work on `db` belongs to a new run. Then either operation_end() follows with
 * the result, and the run ends, or operation_opened(): the new object, a backup or a blob, keeps
 * the run; NULL: the call has failed with `rc`. */
void operation_begin(struct run_call *call, const struct host_library *library, sqlite3 *db,
                     const struct operation_text *text, const void *frame);
void operation_opened(struct run_call *call, const void *handle, int rc);
void operation_end(struct run_call *call, int rc);

/* The same for sqlite3_exec() of a library whose own calls pass no wrapper; inside the exec's own
 * call. operation_end_exec() follows. */
void operation_begin_exec(struct run_call *call, const struct call *exec, sqlite3 *db, const char *sql);
void operation_end_exec(struct run_call *call, int rc);

/* Around the host's wait for a connection's mutex, outside of runs; operation_end() follows. Does not enter
 * the mutex. */
void operation_begin_wait(struct run_call *call, const void *mutex, const void *frame);

/* Enclose a call that works on a handle: operation_used() must follow. For the call that frees it:
 * operation_end(). From its beginning the handle is unknown, because its address may belong to
 * another object before the call returns. */
void operation_use(struct run_call *call, const struct host_library *library, const void *handle,
                   const void *frame);
void operation_used(struct run_call *call);
void operation_finish(struct run_call *call, const struct host_library *library, const void *handle,
                      const void *frame);

/* Around the closing of a connection, with which its session may end; operation_end() follows. */
void operation_begin_close(struct run_call *call, const struct host_library *library, sqlite3 *db,
                           const void *frame);
