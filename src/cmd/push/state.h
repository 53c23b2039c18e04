/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position up to which a trace file was sent to a target, in a small file next to it: FILE-push-… .
 * Without that file everything is sent again, and the target counts it once.
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
	/* The target has everything up to `sent`. The rows from there to `next` were in flight: all of
	 * them are sent again, as the same requests. */
	struct push_position sent, next;
};

/* Reads the file, or makes it. path NULL: next to the trace file, named after the target. False after a
 * complaint: it cannot be written, or another push has locked it. */
bool push_state_open(struct push_state *state, const char *trace_file, const char *target, const char *path);

/* False after a complaint. */
bool push_state_write(struct push_state *state);
void push_state_close(struct push_state *state);
