/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that loses power. This VFS wraps SQLite's own. It records each write and each sync in order, and
 * makes the files as a loss of power at any of these moments could leave them.
 *
 * The model: everything written before a sync of the file (xSync) is kept. Of later writes, any part may be
 * kept, in any order; a sector is kept as a whole or not at all. A file that was removed with its directory
 * synced is gone; otherwise it may be back.
 */
#ifndef TESTS_STORE_LOSSY_DISK_H
#define TESTS_STORE_LOSSY_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replaces the default VFS under its name. To be called before anything uses SQLite. */
void disk_install(void);

/* Starts to record the changes of `path` and its logs, and forgets the previous recording. Each xSync of the
 * file or its log calls `note` and records the result. NULL ends the recording. */
void disk_record(const char *path, uint64_t (*note)(void));

/* The number of moments: 0 is before the first write, disk_moments() is after the last. */
size_t disk_moments(void);

/* The result of `note` at the newest xSync of the write-ahead log before the moment. 0: none. */
uint64_t disk_noted(size_t moment);

enum disk_loss {
	LOSE_NOTHING,  /* every write is kept, as if the process was killed */
	LOSE_UNSYNCED, /* only synced writes are kept */
	LOSE_RANDOMLY,
};

/* Makes the files at `path` as they are after the loss at that moment. */
void disk_make(const char *path, size_t moment, enum disk_loss loss, uint64_t seed);

#endif
