/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a WAL's index, read from the mapping that the host has: by the kernel, so that a file that was
 * truncated meanwhile is an error and no signal. No file is opened and no lock is taken.
 */
#pragma once

#include <stdbool.h>
#include <sqlite3ext.h>
#include <stdint.h>

struct lock_file;
struct run;

/* SQLite's slots of the index: those of its locks. */
enum wal_slot {
	SLOT_WRITE,
	SLOT_CHECKPOINT,
	SLOT_RECOVER,
	SLOT_READ, /* of the read mark 0, which readers of the database file have */
};
#define READ_MARKS 5

/* A file of a database, its table of methods, of which xShmMap is SQLite's own, and the run that calls, NULL:
 * not followed. */
struct wal_call {
	struct lock_file *entry;
	sqlite3_file *file;
	const sqlite3_io_methods *methods;
	const struct run *run;
};

struct wal_index {
	bool is_read; /* else the rest is 0 */
	uint32_t page_size, frames, copied, salt, marks[READ_MARKS];
};

struct wal_index wal_index_read(const struct wal_call *call);
