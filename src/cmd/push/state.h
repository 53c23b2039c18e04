/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a trace file was sent to a target, kept in a small file beside it: FILE-push-… . Where
 * the file is gone, everything is sent again, which the target counts once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum push_position_part {
	PUSH_FILE, /* the file's identity */
	PUSH_BATCH,
	PUSH_SAMPLES, /* of the file, up to and including the batch */
	PUSH_MODULES, /* rows */
	PUSH_SPANS,   /* rows */
	PUSH_WAITS,   /* ns since 1970 */
	PUSH_STATS,   /* statement_counters.batch that is sent next */
	PUSH_POSITIONS
};

struct push_position {
	int64_t at[PUSH_POSITIONS];
};

struct push_state {
	int fd; /* holds the lock */
	char *path;
	/* Up to `sent` the target has everything. The rows from there to `next` were on their way: all of
	 * them go again, and as the same requests. */
	struct push_position sent, next;
};

/* Reads the file, or makes it; NULL `path`: beside the trace file, named after the target. False
 * after a complaint: it cannot be written, or another push holds it. */
bool push_state_open(struct push_state *state, const char *trace_file, const char *target, const char *path);

/* False after a complaint. */
bool push_state_write(struct push_state *state);
void push_state_close(struct push_state *state);
