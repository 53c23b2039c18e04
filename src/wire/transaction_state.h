/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other processes may know of the transaction of a connection. The thread that has the connection
 * writes it: under `record` it is in memory that the command reads (collect/transaction_states.h).
 */
#pragma once

#include "wire/record.h"
#include "wire/shared_front.h"

#define TRANSACTION_TEXT_MAX 128
#define TRANSACTION_PATH_MAX 1024

/* What the locks of a file, or of all files of a connection, allow and forbid: any lock, a lock to
 * write, a lock that keeps new readers out, and one that excludes all others. */
enum transaction_lock { HOLD_ANY, HOLD_WRITE, HOLD_PENDING, HOLD_EXCLUSIVE, TRANSACTION_LOCKS };

/* How long a transaction has held locks of one kind. */
struct lock_hold {
	uint32_t files;     /* that have such a lock */
	uint64_t first_ns;  /* CLOCK_MONOTONIC: when the first hold began; 0: none did */
	uint64_t since_ns;  /* when the newest one did */
	uint64_t newest_ns; /* how long it was, if it has ended */
	uint64_t total_ns;  /* of all ended ones */
};

struct transaction_state {
	uint32_t number; /* no other of the process has it; 0: none is open. Written last, and at the end */
	uint32_t session, thread_id, statements;
	struct lock_hold holds[TRANSACTION_LOCKS];
	uint64_t start_ns;   /* CLOCK_MONOTONIC */
	int64_t executed_ns; /* since then, of statements that have ended; below 0 until the first one ends */
	uint64_t publish_after_ns; /* UINT64_MAX: it gets no row */
	struct query_key first, last;
	char text[TRANSACTION_TEXT_MAX]; /* of the first statement */
	char path[TRANSACTION_PATH_MAX]; /* of the file that it wrote to first, or read */
	uint32_t begun; /* the number, written first: it tells a copy that is of two transactions */
} __attribute__((aligned(64)));

#define TRANSACTION_STATES 1024u /* untouched pages cost nothing */

struct transaction_states {
	struct shared_front front;
	struct transaction_state entries[TRANSACTION_STATES];
};
