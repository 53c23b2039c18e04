/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors and the thread that reads their files: the interface for reader.c, the flusher and the store.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/read/rows.h"
#include "store/control/waiting.h"

enum job_state { JOB_NONE, JOB_QUEUED, JOB_RUNNING, JOB_DONE, JOB_REFUSED };

struct store_cursor {
	/* The owner's. */
	struct store_wait wait;
	char *refusal; /* why the owner does not use the reading thread's result */

	/* For the owner; while a job runs, for the reading thread. */
	sqlite3 *db; /* NULL: not open yet, or closed when the store ended */
	sqlite3_stmt *statement;
	char *sql;
	char *path;     /* of the file; NULL: the empty stand-in */
	uint64_t epoch; /* of the store's own file; 0: the stand-in */
	struct rows rows;
	int code;       /* the statement's result: SQLITE_ROW while it continues */
	char *error;    /* the message of the newest step */
	uint64_t forks; /* the number when it was opened: a child does not touch its parent's cursor */
	bool is_remote; /* the reading thread opens, reads and closes its file */

	/* Under the pool's lock. */
	enum job_state job;
	void (*work)(struct store_cursor *cursor);
	bool is_abandoned; /* closed by its owner while a job ran */
	struct store_cursor *next_job;
	struct store_cursor *next;           /* of the idle ones, or of the returned ones */
	struct store_cursor *before, *after; /* of the remote ones that are in use */
};

/* --- for reader.c ------------------------------------------------------------- */

/* A cursor; if the pool has one with the same statement, that one. Takes ownership of `path`. NULL: no
 * memory. */
struct store_cursor *pool_acquire(const char *sql, char *path, uint64_t epoch);

/* For an owner that does not need the cursor any more. */
void pool_give_back(struct store_cursor *cursor);

/* The parent of this forked child opened it. */
bool pool_is_foreign(const struct store_cursor *cursor);

/* Runs `work` on the thread that may do it, and waits by the limits of cursor->wait: for a disk or another
 * cursor's work, up to the limit; for `work`, as long as it makes progress. False: cursor->refusal has the
 * reason. `work` may still run, and then the rest of the cursor belongs to the reading thread. */
bool pool_run(struct store_cursor *cursor, void (*work)(struct store_cursor *cursor));

/* `work` calls it after opening the connection: the connection's statements report their progress. */
void pool_watch_progress(struct store_cursor *cursor);

/* Around binding on the owner's thread: the connection is not closed between these. False: it is closed, or
 * busy. */
bool pool_hold(struct store_cursor *cursor);
void pool_release(void);

/* --- for the flusher and the store -------------------------------------------------- */

/* Closes the idle connections, waits a moment for the busy ones if `waits`, and prevents new ones until
 * pool_resume(). False: some are still busy. */
bool pool_pause(bool waits);
void pool_resume(void);
void pool_reset_in_child(void);

/* Closes the idle connections, because their file is no longer used. */
void pool_close_idle(void);

/* Starts the reading thread if possible. Call it on the flusher's thread, because the new thread inherits its
 * descriptor table. */
void pool_start(void);

/* Ends the reading thread and closes all its connections. Call it on the flusher's thread. False: the reading
 * thread hangs in the file system. */
bool pool_end(void);

bool pool_has_thread(void);
