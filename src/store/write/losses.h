/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's losses and their reasons. One thread at a time keeps the account, of the flusher or the
 * collector. A row of the file's table is a process and a reason, with the sum so far, so writing it twice
 * does not add a row. Another file gets only losses that the earlier files lack.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collect/state.h"
#include "store/write/prepared.h"

#define LOSS_REASONS 8
#define LOSS_REASON_SIZE 160

/* The beginning of a reason that counts runs missing in statement_stats. */
#define LOSS_UNCOUNTED "runs were not counted: "

#define LOSS_UNREADABLE "the records of a process cannot be read"

/* The reason of records that a thread had begun, and not committed. */
#define LOSS_INCOMPLETE "a thread was still writing them when the recording of its process ended"

struct writer;

struct loss_writer {
	struct {
		struct prepared add;
	} sql;
};

extern const struct loss_writer loss_writer_new;

struct loss {
	int64_t first_ns, last_ns; /* CLOCK_REALTIME; 0: the slot is free */
	uint64_t samples;          /* and rows of query_log, lock_waits and others, and spans */
	uint64_t refusals;         /* whose samples were not counted */
	uint64_t stored_samples, stored_refusals;
	char reason[LOSS_REASON_SIZE];
};

struct losses {
	struct loss reasons[LOSS_REASONS]; /* the last one takes all further reasons */
	uint64_t ring_dropped;             /* the last value of ring_dropped() */
	int64_t file;                      /* the identity of the file with the stored losses */
};

/* Notes lost records, or refusals. Does nothing if both are 0. */
void losses_note(struct losses *losses, const char *reason, uint64_t samples, uint64_t refusals);

/* Timers, threads and sessions that were refused, by the sampler's counters, since the last call with this
 * `noted`. */
struct refusals {
	uint64_t timers, threads, sessions, allocators, blocks;
};
void losses_note_refusals(struct losses *losses, const uint64_t counters[SAMPLER_COUNTERS],
                          struct refusals *noted);

/* Counts what the ring has dropped since the last call. */
void losses_note_dropped(struct losses *losses, uint64_t ring_dropped);

/* Whether the file lacks losses. */
bool losses_are_pending(const struct losses *losses);

/* Adds the losses of `from` that the file lacks. */
void losses_add_waiting(struct losses *to, const struct losses *from);

/* Inside a transaction: writes the missing losses; losses_stored() follows the commit. SQLITE_OK or the
 * error. */
int losses_write(struct losses *losses, struct writer *writer);
void losses_stored(struct losses *losses);
