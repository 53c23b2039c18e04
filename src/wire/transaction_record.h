/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a transaction that lasted, or that a statement waited for.
 */
#pragma once

#include <stdint.h>

#include "wire/record.h"

/* The numbers are in files. */
enum transaction_outcome {
	TRANSACTION_READ,
	TRANSACTION_COMMITTED,
	TRANSACTION_ROLLED_BACK,
	TRANSACTION_OPEN,   /* its next record replaces this one */
	TRANSACTION_KILLED, /* its process ended before, or became another program */
};

/* Times in ns. The database's path and the beginnings of the two statements are consecutive in
 * `text`, without terminators. */
struct transaction_record {
	struct query_key first, last;
	uint64_t start_realtime_ns, duration_ns;
	/* How long it held the write lock, the one that keeps new readers out, and the exclusive one. */
	uint64_t write_ns, pending_ns, exclusive_ns;
	uint64_t idle_ns; /* the program did not call SQLite */
	/* CPU time of its thread: all of it, and the program's own. And how long the thread was ready while
	 * others had the processors. */
	uint64_t cpu_ns, idle_cpu_ns, run_delay_ns;
	uint32_t has_cpu; /* 0: these three are not known */
	uint32_t number;  /* no other of the process has it */
	uint32_t session, thread_id, statements;
	uint32_t outcome; /* enum transaction_outcome */
	uint32_t was_waited_for;
	uint32_t database_size, first_size, last_size;
	char text[];
};
