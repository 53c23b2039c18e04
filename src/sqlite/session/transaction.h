/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a session's transaction, see transactions.h.
 */
#ifndef QUERYPROF_SQLITE_SESSION_TRANSACTION_H
#define QUERYPROF_SQLITE_SESSION_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/outside.h"
#include "wire/record.h"
#include "wire/wait.h"

#define TRANSACTION_TEXT_MAX 128

/* What the locks of a file, or of all files of a connection, allow and forbid: any lock, a lock to
 * write, a lock that keeps new readers out, and one that excludes all others. */
enum transaction_lock { LOCK_ANY, LOCK_WRITE, LOCK_PENDING, LOCK_EXCLUSIVE, TRANSACTION_LOCKS };

struct lock_file;

/* How long a transaction has held locks of one kind. */
struct lock_hold {
	uint32_t files;     /* that have such a lock */
	uint64_t first_ns;  /* CLOCK_MONOTONIC: when the first hold began; 0: none did */
	uint64_t since_ns;  /* when the newest one did */
	uint64_t newest_ns; /* how long it was, if it has ended */
	uint64_t total_ns;  /* of all ended ones */
};

struct transaction {
	struct open_transaction open;
	bool was_waited_for; /* atomic */
	bool was_told;       /* that it was, to a run that continues it */
	uint32_t thread_id, statements;
	struct lock_hold holds[TRANSACTION_LOCKS];
	struct lock_file *file;    /* that it locked first */
	struct lock_file *written; /* has given back its lock to write in the present run; NULL: none */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; 0: not yet */
	int64_t executed_ns;       /* since it began, of its statements; below 0 until the first one ends */
	uint64_t ended_in_ns;      /* into the calls of the run in which it ended */
	/* The same of CPU time, of a transaction on one thread. */
	bool has_threads;
	uint64_t start_cpu_ns, end_cpu_ns;
	int64_t executed_cpu_ns;
	uint64_t ended_in_cpu_ns;
	struct thread_account account; /* of its thread when it began, or up to 1 ms before */
	struct query_key first, last;
	char text[TRANSACTION_TEXT_MAX]; /* of the first statement */
	char path[1024];                 /* of the file that it wrote to first, or read */
};

#endif
