/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores what a process has left in its shared ring, in its name and as its flusher would have
 * done: a process that is gone, or one that cannot open the file (store/detach.h).
 */
#ifndef QUERYPROF_STORE_RECOVERY_H
#define QUERYPROF_STORE_RECOVERY_H

#include <stdint.h>

#include "store/write/losses.h"

/* How long other processes may keep the file locked without a break: after that, the records that wait
 * are lost. A program's end is delayed by this much at most, however many processes it had. */
#define RECOVERY_PATIENCE_NS 4000000000

struct recovery {
	uint64_t samples, queries; /* stored */
	uint64_t unfinished;       /* the process ended while it wrote them */
	struct losses losses;      /* that the file does not have */
	/* When other processes had the file locked, without a break; 0: the newest try went well. */
	int64_t locked_since_ns, locked_until_ns;
};

/* `fd`: of the shared ring, whose process must be gone. The trace file `path` is kept near
 * `max_bytes`; 0: it is not. Adds to `*recovery`. A ring that cannot be read has nothing to
 * store. */
void recovery_store(int fd, const char *path, int64_t max_bytes, struct recovery *recovery);

/* The same of a process that runs, and does not read its ring: what is committed. */
void recovery_store_running(int fd, const char *path, int64_t max_bytes, struct recovery *recovery);

#endif
