/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run: it is counted, and has a line in the log if it is worth one.
 */
#ifndef QUERYPROF_SQLITE_RUNS_END_H
#define QUERYPROF_SQLITE_RUNS_END_H

#include "sqlite/runs/runs.h"

/* How it ends. In two registers. */
struct run_result {
	struct thread *thread; /* NULL: it is not sampled any more, and the run has no line */
	int rc;
	bool is_locked;     /* under the mutex of the statement's connection since before the real call */
	bool is_in_call;    /* of the host, which works for the run: no reset */
	bool has_statement; /* a preparation: it has made the statement that it is named after */
};

/* Ends a run, with a line in the log if it is worth one. A preparation that went well has none: its
 * statement has its time. */
void run_end(struct run *run, struct run_result result);

/* Whether it has samples, or took long enough. */
bool runs_worth_logging(const struct run *run);

#endif
