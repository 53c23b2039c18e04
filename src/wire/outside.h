/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's own code works for, outside the calls of queries: an open run, whose rows it
 * handles ("between rows"), or an open transaction.
 *
 * A thread's calls tell nobody when they are over, so nothing is added to them. What they leave is
 * enough: the newest tag remains in its place, and a run that is open is shown (wire/open_run.h). Only a
 * run whose place another one takes is written down, and each transaction, once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

struct query_counts;

/* Memory that is never unmapped. The thread that has the connection changes it. */
struct open_transaction {
	uint32_t number;  /* atomic; 0: there is none */
	bool has_ended;   /* and the run in which it did so has not */
	const void *slot; /* of the thread that worked in it last */
};

struct outside_run {
	struct query_counts *counts; /* NULL: none */
	struct query_key key;
};

/* Of a thread; more of them are not known, and have no samples. The newest first. They may have ended. */
#define OUTSIDE_RUNS 4
#define OUTSIDE_TRANSACTIONS 4

struct outside {
	struct outside_run runs[OUTSIDE_RUNS]; /* besides the one of the newest tag */
	const struct open_transaction *transactions[OUTSIDE_TRANSACTIONS];
	/* Of the interpreter that called SQLite last: its number plus one, 0: none; and its address of what
	 * it knows of the thread. See interpreter/call_stack.h. */
	uint32_t language;
	uintptr_t language_thread;
};
