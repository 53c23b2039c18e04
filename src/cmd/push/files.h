/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace files that push sends: those of the command line, and all in its folders, also those that
 * come later.
 *
 * A file that cannot be read is left out until it changes, and the others go on. One that was removed is read
 * to its end and closed: as long as push has it open, the disk has its space.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "cmd/push/stacks.h"
#include "cmd/push/state.h"

/* How a file and its log look from outside; all 0: it is not there. */
struct push_sight {
	int64_t device, inode, size, changed_ns, log_size, log_changed_ns;
};

struct push_file {
	char *path;
	bool is_of_folder;
	bool is_removed;        /* nothing has its path */
	bool is_skipped;        /* until it looks otherwise than `seen` */
	char *failure;          /* the newest that was printed; NULL: none */
	struct push_sight seen; /* when it was opened, or looked at, last */
	struct push_state state;
	bool has_state;
	sqlite3 *db; /* NULL: not open */
	struct push_stacks stacks;
	int64_t newest_name; /* when it was opened */
	int64_t removals;    /* of rows, when the stacks were read */
};

struct push_files {
	VECTOR(struct push_file) list;
	VECTOR(char *) folders;
};
extern struct push_files push_files;

/* Files and folders of the command line. A command_result, after a complaint. */
int push_files_acquire(int count, char **paths);

/* Takes what is new in the folders, and forgets files of theirs that were removed. False: no memory. */
bool push_files_scan(void);

/* Opens it, if it is not open, or if another has its path, or it has got names since. file->db is NULL where
 * it was removed. A command_result, after a complaint. */
int push_files_open(struct push_file *file);

/* Closes a file that was removed, when all of it is sent. */
void push_files_close_removed(struct push_file *file);

/* Whether the file is still left out. */
bool push_files_is_skipped(struct push_file *file);

/* Leaves it out. Prints the failure, which it takes, unless it is the one that was printed last. */
void push_files_skip(struct push_file *file, char *failure, bool is_followed);

/* It was read well: its next failure is a new one. */
void push_files_is_read(struct push_file *file);

/* Whether one is left out; whether there is one, or a folder, that is not. */
bool push_files_has_bad(void);
bool push_files_has_sound(void);

void push_files_free(void);
