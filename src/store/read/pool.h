/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors and the thread that works on their files, as reader.c, the flusher and the store
 * see them.
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
	char *refusal; /* why the owner did without the reading thread's result */

	/* The owner's, and the reading thread's while a job runs. */
	sqlite3 *db; /* NULL: not open yet, or closed when the store ended */
	sqlite3_stmt *statement;
	char *sql;
	char *path;     /* of the file; NULL: the empty stand-in */
	uint64_t epoch; /* of the store's own file; 0: the stand-in */
	struct rows rows;
	int code;       /* of the statement: SQLITE_ROW while it continues */
	char *error;    /* of the newest step */
	uint64_t forks; /* when it was opened: a child does not touch its parent's cursor */
	bool is_remote; /* the reading thread opens, reads and closes its file */

	/* Under the pool's lock. */
	enum job_state job;
	void (*work)(struct store_cursor *cursor);
	bool is_abandoned; /* closed by its owner while a job ran */
	struct store_cursor *next_job;
	struct store_cursor *next;           /* of the idle ones, or of those given back */
	struct store_cursor *before, *after; /* of the remote ones that are in use */
};

/* --- for reader.c ------------------------------------------------------------- */

/* A cursor, with the same statement prepared if the pool has such. Takes over `path`. NULL:
 * no memory. */
struct store_cursor *pool_acquire(const char *sql, char *path, uint64_t epoch);

/* The owner does not use it any more. */
void pool_give_back(struct store_cursor *cursor);

/* The parent of this forked child opened it. */
bool pool_is_foreign(const struct store_cursor *cursor);

/* Has `work` done on the thread that may do it, and waits for it by cursor->wait: without a limit
 * while the work progresses, but with one for another cursor's work and for a disk. False:
 * cursor->refusal has the reason; the work may still run, and then the rest of the cursor belongs
 * to the reading thread. */
bool pool_run(struct store_cursor *cursor, void (*work)(struct store_cursor *cursor));

/* For `work`, which has opened the connection: its statements report their progress. */
void pool_watch_progress(struct store_cursor *cursor);

/* Binding on the owner's thread: the connection is not closed between these. False: it is closed, or busy. */
bool pool_hold(struct store_cursor *cursor);
void pool_release(void);

/* --- for the flusher and the store -------------------------------------------------- */

/* Closes the idle connections, and `waits` a moment for the busy ones; keeps new ones from
 * being opened until pool_resume(). False: some are busy still. */
bool pool_pause(bool waits);
void pool_resume(void);
void pool_reset_in_child(void);

/* Closes the idle connections, because their file is no longer in use. */
void pool_close_idle(void);

/* On the flusher's thread, whose descriptor table the new thread inherits: starts the reading
 * thread if possible. */
void pool_start(void);

/* On the flusher's thread: afterwards no connection of the reading thread is open, and it has
 * ended. False: it hangs in the file system. */
bool pool_end(void);

bool pool_has_thread(void);
