/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file below SQLite: who may write to it, who is making it, and a lock that shows other
 * processes that it is in use.
 *
 * The store's threads have a separate descriptor table (descriptors.h). So if the host's copy of
 * SQLite also has the trace file open, its locks belong to another process from the point of view of
 * queryprof. Within queryprof's table any close() of the file drops all POSIX locks on it, and
 * guard_open() closes one when it refuses a file. Therefore the guard is another descriptor of
 * the file with an open file description lock on SQLite's "shared" bytes, which makes queryprof look
 * like any other reader: no process can consider the file unused. It is an ordinary lock of SQLite's
 * protocol; so are those of the log's index (wal_index.c).
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

/* Opens the file, which gets mode 0600, and makes it if it does not exist; other processes that open it wait
 * until guard_end_setup(). QP_OK, or QP_STORE, QP_TOO_NEW or DATABASE_LOCKED with a sentence in `*error`
 * (malloc'ed). A file that is neither empty nor a trace file remains unchanged. */
int guard_open(struct guard *guard, const char *path, const struct contention_limit *limit, char **error);

/* From now on the file is in use. False: another process has it. */
bool guard_lock(const struct guard *guard, const struct contention_limit *limit);
void guard_end_setup(const struct guard *guard);
void guard_close(struct guard *guard);

/* Whether the open file still has a name. */
bool guard_is_linked(const struct guard *guard);

/* Whether `path` names the open file. */
bool guard_is_at(const struct guard *guard, const char *path);
