/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores what a process that is gone has left in its shared ring, in its name and as its
 * flusher would have done.
 */
#ifndef QUERYPROF_STORE_RECOVERY_H
#define QUERYPROF_STORE_RECOVERY_H

#include <stdint.h>

struct recovery {
	uint64_t samples, queries; /* stored */
	uint64_t lost;             /* committed, and not stored */
	uint64_t unfinished;       /* the process ended while it wrote them */
};

/* `fd`: of the shared ring, whose process must be gone. The trace file `path` is kept near
 * `max_bytes`; 0: it is not. Adds to `*recovery`. QP_OK, or a QP_ code with a sentence in
 * `*error` (free() it). A ring that cannot be read has nothing to store. */
int recovery_store(int fd, const char *path, int64_t max_bytes, struct recovery *recovery, char **error);

#endif
