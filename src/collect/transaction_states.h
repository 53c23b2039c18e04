/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open transactions of this process, in memory that another process also holds
 * (handover/shared_ring.h), which reads them while this one runs (cmd/live).
 *
 * The entry of a connection's place is permanent. It is all that is stored of these words, so that the
 * other process costs this one nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collect/shared_entries.h"
#include "wire/transaction_state.h"

struct ring;

extern struct shared_entries transaction_states;

/* --- in the other process, which has copies ------------------------------------------------------- */

/* The next open transaction from number `*from` on; advances `*from` past it. Texts end in a zero. NULL:
 * there is no further one. */
const struct transaction_state *transaction_states_next(void *copy, uint32_t *from);

/* How long a transaction of a running process must be open before it is published. */
#define OPEN_TRANSACTION_PUBLISHED_NS 100000000ull

/* Whether one is open long enough for a row at `until_ns` (CLOCK_MONOTONIC). `is_ended`: the process is gone.
 */
bool transaction_states_has_remains(const void *copy, uint64_t until_ns, bool is_ended);

/* Writes each of them into the ring, once for a copy. `runs`: the copy of open_runs.h. False: the ring has no
 * space for the next one. */
bool transaction_states_hand_over(void *copy, const void *runs, uint64_t until_ns, bool is_ended,
                                  struct ring *ring);
