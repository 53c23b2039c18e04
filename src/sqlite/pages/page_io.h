/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read and written of each b-tree, by statement: the calls of SQLite's own file methods are counted
 * in the order in which they happen. If a transaction writes, each page's b-tree is found when it ends,
 * because a page may be written before the one that points to it. A read of a page whose b-tree is known is
 * counted immediately. About once a second, the sums of a thread become records of the ring.
 *
 * Not seen: reads through the memory mapping of PRAGMA mmap_size, temporary files, and what the first
 * connection reads while it is being opened.
 */
#pragma once

#include <stdbool.h>

#include "handler/thread.h"
#include "sqlite/pages/page_files.h"

/* The setting; atomic. */
extern bool page_io_is_on __attribute__((visibility("hidden")));

static inline bool page_io_is_seen(void)
{
	/* Relaxed: a change takes effect at a later call. */
	return thread_current && __atomic_load_n(&page_io_is_on, __ATOMIC_RELAXED);
}

/* A method has read or written. If page_io_is_seen(). */
void page_io_see_read(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 offset);
void page_io_see_write(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 offset);

/* A lock was given back: the transaction may have ended. */
void page_io_end(struct page_io *io);

static inline void page_io_see_unlock(void)
{
	struct page_io *io =
		thread_current ? __atomic_load_n(&thread_current->page_io, __ATOMIC_RELAXED) : NULL;

	if (io)
		page_io_end(io);
}

/* The file is a new one, whose structure may lie where one was that was not seen to be closed. */
void page_io_see_open(const sqlite3_file *file);

/* The file will be closed; the connection unmaps the index of its WAL. */
void page_io_see_close(const sqlite3_file *file);
void page_io_see_unmap(const sqlite3_file *database_file);

/* Files are closed from now on without being seen. */
void page_io_forget(void);

/* The process or the recording ends: writes the rest of all threads to the ring. */
void page_io_flush_all(void);
