/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace file that this process writes to, through one connection (the flusher) or one for each recorded
 * process (the collector): its bound, and its syncs.
 */
#ifndef QUERYPROF_STORE_WRITTEN_FILE_H
#define QUERYPROF_STORE_WRITTEN_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct writer;

struct written_file {
	char *path;         /* the owner's */
	int64_t max_bytes;  /* of the file and its log, near; 0: no bound */
	bool is_unsynced;   /* rows were stored after the newest sync */
	int64_t sync_at_ns; /* no sync before, while more comes */
};

/* Whether the file is over its bound although it was trimmed: a reader holds an old state, so that the log
 * cannot start again. A file from before the bound was lowered is larger, too, but takes samples into its
 * free pages while it is made smaller: all samples were lost there once. `*bytes`: its size. */
bool written_file_is_over_bound(const struct written_file *file, struct writer *writer, int64_t *bytes);

/* Stored rows are to survive the machine. `is_last`: nothing more comes for now. False: it cannot be synced,
 * and errno says why. */
bool written_file_sync(struct written_file *file, struct writer *writer, bool is_last);

/* When work is due again that began at `start`: it pauses `times` as long as it took, and at least `least`.
 */
int64_t next_turn(int64_t start, int64_t times, int64_t least);

#endif
