/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WALs and their checkpoints, as the methods of SQLite's files show them.
 *
 * The offset at which SQLite writes a frame's header gives the number of the frame, and the header tells
 * whether the transaction commits. The head of the WAL's index (wal_index.h), read at both ends of a
 * checkpoint's lock, tells what the checkpoint found and left.
 *
 * Not seen are checkpoints of a connection with PRAGMA locking_mode = EXCLUSIVE, which requests no locks of
 * the index, except the last one, when it closes.
 */
#pragma once

#include <stdbool.h>
#include <sqlite3ext.h>

#include "handler/thread.h"
#include "sqlite/locks/wal_index.h"
#include "sqlite/session/run.h"

/* Whether it is known which file is the WAL of the database, whose writes are seen; and which it is. */
bool wal_has_file(struct lock_file *entry);
void wal_set_file(struct lock_file *entry, const sqlite3_file *file);

/* SQLite has requested exclusive locks of the index, and got `rc`. */
void wal_see_lock(const struct wal_call *call, int first, int count, int rc);
/* It releases them afterwards. */
void wal_see_unlock(const struct wal_call *call, int first, int count);

/* The file has an exclusive lock, as at the end of the last connection: a checkpoint may follow, until the
 * index is unmapped. */
void wal_see_exclusive(const struct wal_call *call);
/* The index is unmapped afterwards. */
void wal_see_unmap(const struct wal_call *call);
/* The file's lock is released, and its holder was not a checkpoint. */
void wal_see_unlocked(struct lock_file *entry);

/* A statement of a transaction that BEGIN IMMEDIATE began has ended. */
COLD_PATH void wal_name_author(struct wal *wal, const struct run *run);

/* The bytes of the header of a frame, and of a WAL. */
#define WAL_FRAME_BYTES 24
#define WAL_HEADER_BYTES 32

/* Whether the thread's write of so many bytes may be one that wal_write() must see. */
static inline bool wal_is_watched(const struct thread *thread, int amount)
{
	return thread &&
	       (amount == WAL_FRAME_BYTES || amount == WAL_HEADER_BYTES || thread->wait.is_checkpointing);
}

/* The methods of any file; they call the real ones. */
int wal_write(sqlite3_file *file, const void *data, int amount, sqlite3_int64 offset,
              int (*real)(sqlite3_file *, const void *, int, sqlite3_int64));
int wal_sync(sqlite3_file *file, int flags, int (*real)(sqlite3_file *, int));
void wal_see_truncate(const sqlite3_file *file, sqlite3_int64 size, const struct run *run);
/* Before the file, which may be a WAL, is removed from the entries; or all of them. */
void wal_see_close(const sqlite3_file *file);
void wal_forget_all(void);

/* The process or the recording ends: writes the rest to the ring. On any thread. */
void wal_flush_all(void);

/* In the child of a fork: discards sums that the parent will write. */
void wal_forget_sums(void);
