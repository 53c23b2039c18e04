/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace files that push sends: those of the command line, and all files in its folders, including later
 * ones.
 * A file that cannot be read is skipped until it changes, and the others continue. A removed file is read to
 * its end and closed, because its space on the disk is freed only then.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "cmd/push/stacks.h"
#include "cmd/push/state.h"

/* The state of a file and its log, seen from outside; all 0: the file does not exist. */
struct push_sight {
	int64_t device, inode, size, changed_ns, log_size, log_changed_ns;
};

struct push_file {
	char *path;
	bool is_of_folder;
	bool is_removed;        /* nothing has its path */
	bool is_skipped;        /* until its state differs from `seen` */
	char *failure;          /* the newest failure that was printed; NULL: none */
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

/* Adds new files of the folders, and forgets those that were removed. False: no memory. */
bool push_files_scan(void);

/* Opens the file if it is not open, if another file has its path, or if names were added to it. file->db
 * is NULL if it was removed. A command_result, after a complaint. */
int push_files_open(struct push_file *file);

/* Closes a removed file after all of it was sent. */
void push_files_close_removed(struct push_file *file);

/* Whether the file is still skipped. */
bool push_files_is_skipped(struct push_file *file);

/* Skips the file. Takes the failure, and prints it unless it was the last one printed. */
void push_files_skip(struct push_file *file, char *failure, bool is_followed);

/* The file was read without an error, so its next failure is a new one. */
void push_files_is_read(struct push_file *file);

/* Whether a file is skipped; and whether there is a file or folder that is not. */
bool push_files_has_bad(void);
bool push_files_has_sound(void);

void push_files_free(void);
