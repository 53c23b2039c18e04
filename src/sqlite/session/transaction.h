/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a session's transaction, see transactions.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/outside.h"
#include "wire/transaction_state.h"
#include "wire/wait.h"

struct lock_file;
struct wal;

struct transaction {
	struct open_transaction open;
	bool was_waited_for;       /* atomic */
	bool was_told;             /* that it was, to a run that continues it */
	struct lock_file *file;    /* that it locked first */
	struct lock_file *written; /* has given back its lock to write in the present run; NULL: none */
	uint64_t end_ns;           /* CLOCK_MONOTONIC; 0: not yet */
	uint64_t ended_in_ns;      /* into the calls of the run in which it ended */
	/* The same of CPU time, of a transaction on one thread. */
	bool has_threads;
	uint64_t start_cpu_ns, end_cpu_ns;
	int64_t executed_cpu_ns;
	uint64_t ended_in_cpu_ns;
	struct wal *author;            /* to be told the first statement that writes; NULL: none */
	struct thread_account account; /* of its thread when it began, or up to 1 ms before */
	/* What other processes may know of it, too; belongs to this place in memory. Never NULL in a session.
	 */
	struct transaction_state *state;
	struct transaction_state own_state; /* that, if it is in no shared memory */
};

/* Of a session that begins. */
void transaction_reset(struct transaction *transaction);
