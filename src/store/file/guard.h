/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file below SQLite: who may write to it, which process makes it, and a lock that shows other
 * processes that it is in use.
 *
 * The store's threads have a separate descriptor table (descriptors.h). So if the host's copy of SQLite has
 * the trace file open, too, its locks count as another process's. Within queryprof's table, any close() of
 * the file drops all POSIX locks on it, and guard_open() closes a descriptor when it refuses a file.
 * Therefore the guard is an additional descriptor with an open file description lock on SQLite's "shared"
 * bytes. It makes queryprof look like any other reader, so no process can consider the file unused. Both this
 * lock and those of the log's index (wal_index.c) are ordinary locks of SQLite's protocol.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "store/file/contention.h"

struct guard {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
};

#define GUARD_CLOSED ((struct guard){ .fd = -1 })

/* Opens the file, makes it if it does not exist, and sets its mode to 0600. Other processes that open it wait
 * until guard_end_setup(). QP_OK, or QP_STORE, QP_TOO_NEW or DATABASE_LOCKED with a sentence in `*error`
 * (malloc'ed). A file that is neither empty nor a trace file remains unchanged. */
int guard_open(struct guard *guard, const char *path, const struct contention_limit *limit, char **error);

/* Marks the file as in use from now on. False: another process has locked it. */
bool guard_lock(const struct guard *guard, const struct contention_limit *limit);
void guard_end_setup(const struct guard *guard);
void guard_close(struct guard *guard);

/* Whether the open file still has a name. */
bool guard_is_linked(const struct guard *guard);

/* Whether `path` names the open file. */
bool guard_is_at(const struct guard *guard, const char *path);
