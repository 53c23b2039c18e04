/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a session's transaction, see transactions.h.
 */
#ifndef QUERYPROF_WATCH_TRANSACTION_H
#define QUERYPROF_WATCH_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"

#define TRANSACTION_TEXT_MAX 128

struct transaction {
	uint32_t number;     /* atomic; 0: there is none */
	uint32_t files;      /* that have a lock */
	bool was_waited_for; /* atomic */
	bool has_ended;      /* and the run in which it did so has not */
	uint32_t thread_id, statements;
	uint64_t start_ns, write_ns, pending_ns, exclusive_ns, end_ns; /* CLOCK_MONOTONIC; 0: not yet */
	int64_t executed_ns;  /* since it began, of its statements; below 0 until the first one ends */
	uint64_t ended_in_ns; /* into the calls of the run in which it ended */
	struct query_key first, last;
	char text[TRANSACTION_TEXT_MAX]; /* of the first statement */
	char path[1024];                 /* of the file that it wrote to first, or read */
};

#endif
