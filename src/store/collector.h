/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores what other processes record, in their name and as their own flusher would: while they run,
 * the committed records of their shared rings (handover/shared_ring.h), and the rest when they have
 * ended, in whatever way. They never wait for it: a ring that is not read in time becomes full, and
 * counts what it drops.
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/file/database.h"
#include "store/write/losses.h"
#include "store/written_file.h"

/* How long other processes may keep the file locked without a break: after that, the records of a process
 * that is gone are lost. A program's end is delayed by this much at most, however many processes it had. */
#define COLLECTOR_PATIENCE_NS 4000000000

/* If no program's end waits for it. */
#define COLLECTOR_PATIENCE_ALONE_NS 60000000000

/* The trace file, and its new content. */
struct collection {
	struct written_file file;
	int64_t interval_ns; /* how long records may wait in a ring that has space; 0: no longer than to the
	                        next look */
	uint64_t samples, queries; /* stored */
	uint64_t unfinished;       /* records that a process was writing when it ended */
	struct losses losses;      /* that the file does not have */
	bool is_alone;             /* no program's end waits */
	/* With `keeps_file` a process that ends leaves its connection to the next one; `kept.db` NULL: there
	 * is none. collection_fold() closes it. */
	bool keeps_file;
	struct database kept;
	/* Since when other processes have had the file locked, without interruption; 0: the last
	 * attempt succeeded. */
	int64_t locked_since_ns, locked_until_ns;
};

struct recorded; /* a process */

/* `fd`: its shared ring, which the process may still be about to make; the caller keeps it open.
 * NULL: out of memory. A ring of another version has nothing to store. */
struct recorded *recorded_open(int fd);

/* How much of the ring's new content is to be stored: nothing, some, or so much that the next look
 * should come soon. */
enum recorded_load { LOAD_NONE, LOAD_SOME, LOAD_HIGH };

/* Stores what the process has committed. If the file cannot be opened now, the records stay in the ring. */
enum recorded_load recorded_store(struct recorded *recorded, struct collection *to);

/* Closes the file until something is to be stored. The data about the process remain. */
void recorded_rest(struct recorded *recorded);

/* The process has ended, or no longer owns its memory: stores everything left, or counts it as
 * lost. Frees `recorded`. */
void recorded_end(struct recorded *recorded, struct collection *to);

/* The connection that is kept, if it has the file that the path names now. NULL: there is none. */
sqlite3 *collection_kept(struct collection *collection);

/* Nothing more comes for now: the log is checkpointed into the file if no other connection has it open. */
void collection_fold(struct collection *collection);
