/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private copies of a database, for statements that must not run on the original.
 * The file, its log and its journal are copied as bytes. Recovery and rollback then happen on the copy, and
 * nothing is locked, written or made next to the database. VACUUM INTO would lock the file, and even a reader
 * makes a -shm.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/ui/keeper.h"

#define PRIVATE_COPIES_MAX 2

struct private_copies {
	char *folder;
	int count;
	char *paths[PRIVATE_COPIES_MAX];
	int64_t bytes;        /* of the database and its log */
	struct keeper keeper; /* removes the folder */
};

#define PRIVATE_COPY_LIVE_OPTION(variable)                                                                   \
	COMMAND_FLAG("live", (variable),                                                                     \
	             "copy the database although a process has it open: it is locked for reading while it "  \
	             "is copied, and nobody can write to it if it has no WAL")

/* Makes this many copies in a private folder in TMPDIR. `command` begins each complaint. If another
 * process has the database open, or changes it meanwhile, the command refuses. A command_result.
 * is_live: a process may have the database open. SQLite then reads it in one transaction, whose lock the
 * messages mention. */
int private_copies_make(const char *command, const char *path, int count, bool is_live,
                        struct private_copies *copies);

/* Removes them. They are also removed if this process ends in any other way. */
void private_copies_remove(struct private_copies *copies);
