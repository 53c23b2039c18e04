/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of databases, as SQLite requests them for its files: which session has which, and which
 * waits.
 *
 * SQLite never blocks in the kernel for a lock: it tries, is refused, sleeps in its busy handler and
 * tries again. Conflicts between connections of one process do not even reach the kernel. So the
 * methods of SQLite's own files are replaced in the library's tables by ones that inspect requests
 * and results. Files of a host's VFS are not SQLite's own; if such a VFS wraps SQLite's, the inner
 * files are seen.
 */
#pragma once

#include "sqlite/session/run.h"

struct file_methods;

/* The session's files are followed from now on. Under the connection's mutex, and not inside of a method. */
void locks_follow(struct session *session);

/* Whether a run that ends with `rc` was refused a lock: SQLITE_BUSY, SQLITE_LOCKED. */
static inline bool locks_is_refusal(int rc)
{
	return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED;
}

/* The tables of all libraries get SQLite's methods back, until a session's files are followed. */
void locks_restore(void);

/* The run ends on this thread with `code`, an extended result code if it is a refusal: so does its wait for a
 * lock. */
COLD_PATH void locks_wait_ends(const struct run *run, const struct thread *thread, int code);

static inline void locks_run_ends(const struct run *run, const struct thread *thread, int code)
{
	if (__builtin_expect(thread->waiting->lock || locks_is_refusal(code), 0))
		locks_wait_ends(run, thread, code);
}

/* A longjmp() has left the call that worked for it, on this thread maybe. */
void locks_run_is_lost(const struct run *run);

/* The thread works for a query inside the busy handler of another one: its waits are not for the
 * lock of the outer one. */
struct lock_around {
	uint64_t query;
	uint32_t lock;
};

static inline struct lock_around locks_set_aside(struct thread *thread)
{
	struct lock_around around = { thread->wait.lock_query, thread->waiting->lock };

	__atomic_store_n(&thread->waiting->lock, 0, __ATOMIC_RELAXED);
	return around;
}

/* If the inner one was refused a lock itself, the outer one detects again that it waits. */
static inline void locks_resume(struct thread *thread, struct lock_around around)
{
	if (thread->waiting->lock)
		return;
	thread->wait.lock_query = around.query;
	__atomic_store_n(&thread->waiting->lock, around.lock, __ATOMIC_RELAXED);
}

/* The replacements of SQLite's methods (file_methods.h); they call the real ones. */
int locks_lock_with(const struct file_methods *real, sqlite3_file *file, int level);
int locks_unlock_with(const struct file_methods *real, sqlite3_file *file, int level);
int locks_shm_lock_with(const struct file_methods *real, sqlite3_file *file, int first, int count, int flags);
int locks_shm_unmap_with(const struct file_methods *real, sqlite3_file *file, int removes);
int locks_truncate_with(const struct file_methods *real, sqlite3_file *file, sqlite3_int64 size);
int locks_sync_with(const struct file_methods *real, sqlite3_file *file, int flags);
int locks_close_with(const struct file_methods *real, sqlite3_file *file);
