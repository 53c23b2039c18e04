/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The databases, WALs and rollback journals that SQLite has open, as its VFS has opened them.
 *
 * A method gets no more than the file. SQLite's functions that tell which file it is, as
 * sqlite3_file_control(), acquire mutexes: with a shared cache and several databases, they would release
 * those of a b-tree in use.
 */
#pragma once

#include <sqlite3ext.h>

#define OPENED_PATH_BYTES 1024 /* longer ones are not known */

enum opened_role {
	OPENED_DATABASE,
	OPENED_WAL,
	OPENED_JOURNAL,
	OPENED_BEFORE, /* it was open when its connection was met: a WAL or a journal */
};

/* The calls of its connection read it, which close the file, too. */
struct opened_file {
	enum opened_role role;
	/* Of a WAL or journal: the database's file of the same connection; of a database: its WAL, or a file
	 * that may be it. NULL: not known. */
	const sqlite3_file *other;
	char path[OPENED_PATH_BYTES]; /* of the database; its last byte is always 0 */
};

/* NULL: it is another file, or not known. */
const struct opened_file *opened_files_find(const sqlite3_file *file);

/* The VFS has opened the file, with that name and these flags. */
void opened_files_see(const sqlite3_file *file, const char *name, int flags);

/* The connection of a session has a database, and its WAL or journal, NULL: neither. */
void opened_files_adopt(const sqlite3_file *database, const char *path, const sqlite3_file *journal);

/* The file will be closed. */
void opened_files_remove(const sqlite3_file *file);

/* Files are opened and closed from now on without being seen. */
void opened_files_forget(void);
