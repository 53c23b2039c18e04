/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that loses its power: a VFS in front of SQLite's own that writes down what
 * reaches the disk, in which order, and when it was synced; and that makes
 * the files as they could be found after a loss of power at any of these moments.
 *
 * Modelled: what was in a file when it was synced (xSync) is there; of what came later any part
 * may be, in any order, in sectors that are whole or not at all; a file that was
 * removed with its directory synced is gone, otherwise it may be back.
 */
#ifndef TESTS_STORE_LOSSY_DISK_H
#define TESTS_STORE_LOSSY_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the place of the default VFS under its name. Before anything else uses SQLite. */
void disk_install(void);

/* Changes of `path` and its logs from now on are written down; their content before is
 * forgotten. `note` is called at each xSync of its log or itself: what it returns
 * is kept with that moment. NULL ends it. */
void disk_record(const char *path, uint64_t (*note)(void));

/* Moments there are: 0 is before the first write, disk_moments() after the last. */
size_t disk_moments(void);

/* The result of `note` at the newest xSync of the write-ahead log before the moment. 0: none. */
uint64_t disk_noted(size_t moment);

enum disk_loss {
	LOSE_NOTHING,  /* all written is there: the process was killed */
	LOSE_UNSYNCED, /* only what was synced */
	LOSE_RANDOMLY,
};

/* Makes the files at `path` as they are after the loss at that moment. */
void disk_make(const char *path, size_t moment, enum disk_loss loss, uint64_t seed);

#endif
