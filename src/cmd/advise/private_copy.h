/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private copies of a database, for statements that nobody else should run.
 *
 * The file, its log and its journal are copied as bytes. So recovery and rollback happen on the copy, and
 * nothing is locked, written or made next to the database. VACUUM INTO would lock the file, and even a reader
 * makes a -shm.
 */
#ifndef QUERYPROF_CMD_ADVISE_PRIVATE_COPY_H
#define QUERYPROF_CMD_ADVISE_PRIVATE_COPY_H

#include <stdint.h>

#include "cmd/ui/keeper.h"

#define PRIVATE_COPIES 2

struct private_copies {
	char *folder;
	char *paths[PRIVATE_COPIES];
	int64_t bytes;        /* of the database and its log */
	struct keeper keeper; /* removes the folder */
};

/* Makes the copies in a private folder in TMPDIR. `command` begins each complaint. If another process has the
 * database open, or changes it meanwhile, it is refused. A command_result. */
int private_copies_make(const char *command, const char *path, struct private_copies *copies);

/* Removes them. They are removed, too, if this process ends in any other way. */
void private_copies_remove(struct private_copies *copies);

#endif
