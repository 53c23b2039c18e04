/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the records of other processes under their identity, as their own flusher would: while they run, the
 * committed records of their shared rings (handover/shared_ring.h), and the rest when they have ended, in any
 * way. They never wait for it: a ring that is not read in time becomes full, and counts what it drops.
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/file/database.h"
#include "store/write/losses.h"
#include "store/written_file.h"

/* How long other processes may keep the file locked without a break. After that, the records of a process
 * that has ended are lost. A program's end is delayed by at most this long, however many processes it had. */
#define COLLECTOR_PATIENCE_NS 4000000000

/* The same if no program's end waits for it. */
#define COLLECTOR_PATIENCE_ALONE_NS 60000000000

/* The trace file, and its new content. */
struct collection {
	struct written_file file;
	int64_t interval_ns; /* how long records may wait in a ring that has space; 0: records and counters
	                        are stored at each look */
	uint64_t samples, queries; /* stored */
	struct losses losses;      /* that are not in the file */
	bool is_alone;             /* no program's end waits */
	/* With `keeps_file`, a process that ends passes on its connection to the next one; `kept.db` NULL:
	 * none. collection_fold() closes it. */
	bool keeps_file;
	struct database kept;
	/* Since when other processes have had the file locked, without interruption; 0: the last
	 * attempt succeeded. */
	int64_t locked_since_ns, locked_until_ns;
};

struct recorded; /* a process */

/* fd: its shared ring, which the process may not have made yet; the caller keeps it open. NULL: out of
 * memory. A ring of another version has nothing to store. */
struct recorded *recorded_open(int fd);

/* How much new content the ring has to store: none, some, or so much that the next look should come soon. */
enum recorded_load { LOAD_NONE, LOAD_SOME, LOAD_HIGH };

/* Stores the committed records of the process. If the file cannot be opened now, the records stay in the
 * ring. */
enum recorded_load recorded_store(struct recorded *recorded, struct collection *to);

/* Closes the file until there is something to store. The data about the process remain. */
void recorded_rest(struct recorded *recorded);

/* The process has ended, or no longer owns its memory: stores everything left, or counts it as
 * lost. Frees `recorded`. */
void recorded_end(struct recorded *recorded, struct collection *to);

/* Like recorded_end(), for a process that continues and is no longer recorded. */
void recorded_leave(struct recorded *recorded, struct collection *to);

/* The kept connection, if its file is the one that the path names now. NULL: none. */
sqlite3 *collection_kept(struct collection *collection);

/* If nothing more is expected for now: checkpoints the log into the file, unless another connection has it
 * open. */
void collection_fold(struct collection *collection);
