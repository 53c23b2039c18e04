/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace file that this process writes to, through one connection (the flusher) or one for each recorded
 * process (the collector): its bound, and its syncs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct writer;

struct written_file {
	char *path;         /* belongs to the owner */
	int64_t max_bytes;  /* approximate limit of the file and its log; 0: none */
	bool is_unsynced;   /* rows were stored after the newest sync */
	int64_t sync_at_ns; /* no earlier sync while more arrives */
};

/* Whether the file exceeds its limit although it was trimmed: a reader holds an old snapshot, so
 * the log cannot restart. After the limit was lowered, a file is larger, too, but takes samples
 * into its free pages while it shrinks. (Without this distinction all samples were once lost.)
 * `*bytes`: its size. */
bool written_file_is_over_bound(const struct written_file *file, struct writer *writer, int64_t *bytes);

/* Makes stored rows durable. is_last: nothing more is expected for now. False: it cannot be synced; errno has
 * the reason. */
bool written_file_sync(struct written_file *file, struct writer *writer, bool is_last);

/* When work that began at `start` is due again: after a pause of `times` its duration, but at least
 * `least`. */
int64_t next_turn(int64_t start, int64_t times, int64_t least);
