/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's own methods of files, which are replaced in the library's tables.
 *
 * SQLite has a table for files with locks, the databases, and one for files without: WALs, journals,
 * temporary files.
 */
#pragma once

#include <sqlite3ext.h>

#include "sqlite/session/run.h"

/* A table of methods, and what stood in it. */
struct file_methods {
	const sqlite3_io_methods *table; /* NULL: none */
	int (*close)(sqlite3_file *);
	int (*lock)(sqlite3_file *, int);
	int (*unlock)(sqlite3_file *, int);
	int (*shm_lock)(sqlite3_file *, int, int, int);
	int (*shm_unmap)(sqlite3_file *, int);
	int (*read)(sqlite3_file *, void *, int, sqlite3_int64);
	int (*write)(sqlite3_file *, const void *, int, sqlite3_int64);
	int (*truncate)(sqlite3_file *, sqlite3_int64);
	int (*sync)(sqlite3_file *, int);
};

/* Replaces the methods in the file's table, and in that of the library's files without locks. False: the file
 * is not one of SQLite's own. */
bool file_methods_replace(const struct host_library *library, const sqlite3_file *file);

/* Whether SQLite reads both from files of the kernel. Of a database and its journal. */
bool file_methods_are_alike(const sqlite3_file *database, const sqlite3_file *journal);

/* Replaces the function that opens files in the VFSes of the library. */
void file_methods_replace_open(const struct host_library *library);

/* All tables get SQLite's methods back. */
void file_methods_restore(void);

/* Whether the file's table still has the replacement of xShmUnmap. */
bool file_methods_see_unmap(const struct file_methods *real, const sqlite3_file *file);

/* The run for which the calling code works, NULL: none of the host's. */
static inline struct run *file_methods_run(struct calling *calling)
{
	struct call_slot *slot = calling ? calling_find(calling, __builtin_frame_address(0)) : NULL;

	return slot && slot->run && !slot->run->is_queryprofs ? slot->run : NULL;
}
