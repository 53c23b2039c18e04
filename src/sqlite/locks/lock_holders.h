/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open database files of sessions, and the locks that each has.
 *
 * A connection's calls change its own files' entries, one at a time, as SQLite has it; another
 * thread that looks for a lock's holder reads them meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <sqlite3ext.h>
#include <stdint.h>

#include "handler/thread.h"
#include "wire/lock_record.h"
#include "wire/wait.h"

struct query_run;
struct transaction;
struct wal;

struct lock_file;

/* Of holds and waits: the clock of the calling thread; 0: the thread is not known. */
static inline uint64_t lock_now_ns(void)
{
	return thread_current ? fast_clock_ns(&thread_current->clock) : 0;
}

/* A lock that a connection requests, or has. */
struct lock_request {
	enum wait_object lock; /* of the WAL's readers: the last */
	int slot;              /* of the WAL index; -1: a lock of the file */
	bool is_exclusive;
};

struct lock_request lock_of_level(int level);
struct lock_request lock_of_slot(int slot, bool is_exclusive);

/* The file's entry, NULL: it is not known. */
struct lock_file *lock_file_find(const sqlite3_file *file);

/* Adds an entry, of the session with this number and its transactions, whose memory stays. `path`
 * is copied. NULL: no room. */
struct lock_file *lock_file_add(const sqlite3_file *file, const char *path, struct transaction *transaction,
                                uint32_t session);
void lock_file_remove(const sqlite3_file *file);

/* All of them, because files are closed and locks released from now on without being seen. */
void lock_files_forget(void);

/* The file belongs to this session from now on. */
void lock_file_set_session(struct lock_file *file, struct transaction *transaction, uint32_t session);

/* The transaction of the session to which the file belongs, and that session's number. */
struct transaction *lock_file_transaction(const struct lock_file *file, uint32_t *session);

/* The file of the database. */
const char *lock_file_path(const struct lock_file *file);

/* Whether it has an index of a WAL in memory, which it has until lock_file_lost_wal(). */
bool lock_file_has_wal(const struct lock_file *file);

/* Whether it has a lock of that index which only a connection takes that has mapped it. */
bool lock_file_uses_index(const struct lock_file *file);
void lock_file_lost_wal(struct lock_file *file);

/* The state of its WAL; NULL at first, and never removed. The connection's calls change it. */
struct wal **lock_file_wal(struct lock_file *file);

/* `wal` is the file of its WAL from now on, until lock_file_remove(). And the database's entry of a WAL's,
 * NULL: it is none. */
void lock_file_add_wal(struct lock_file *file, const sqlite3_file *wal);
struct lock_file *lock_file_database(const struct lock_file *wal);

/* Calls `visit` for each known WAL, under the lock: no file is added or removed meanwhile. */
void lock_files_visit_wals(void (*visit)(struct wal *wal));

/* The kinds of locks that it has for a transaction: 1 << enum transaction_lock for each. */
unsigned lock_file_locks(const struct lock_file *file);

/* Whether the calling thread took the lock that it has. */
bool lock_file_is_locked_here(const struct lock_file *file);

/* The file has the lock now; `run` NULL: no known run took it. */
void lock_file_acquired(struct lock_file *file, struct lock_request taken, const struct query_run *run);

/* True: being refused this lock, it has PENDING now. */
bool lock_file_is_pending(struct lock_file *file, struct lock_request refused);

/* The file has at most this level, or not the slot any more. */
void lock_file_lowered_level(struct lock_file *file, int level);
void lock_file_released_slots(struct lock_file *file, int first, int count);

/* The file's newest writer, which has given the lock back, has changed the database. */
void lock_file_committed(struct lock_file *file, uint64_t now_ns);

/* The first known writer on another connection that has changed the database since then (CLOCK_MONOTONIC).
 * `text` gets the beginning of its statement. False: it is none that this process follows. */
bool lock_file_find_writer(const struct lock_file *file, uint64_t since_ns, struct lock_holder *writer,
                           char text[LOCK_TEXT_MAX]);

/* True: SQLite requests this lock only if nobody has it, and never waits for it. A commit that could begin
 * the WAL again tries the readers' locks; a checkpoint waits for them. */
bool lock_file_only_tries(const struct lock_file *file, struct lock_request refused);

/* The holder of a conflicting lock. `text` gets the beginning of its statement. False: it is no
 * other file of this process. */
bool lock_file_find_holder(const struct lock_file *file, struct lock_request request,
                           struct lock_holder *holder, char text[LOCK_TEXT_MAX]);

/* CLOCK_MONOTONIC: when the holder's transaction began; 0: it has ended. */
uint64_t lock_holder_since(const struct lock_holder *holder);
