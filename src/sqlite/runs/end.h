/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run: it is counted, and logged if it is worth a row.
 */
#ifndef QUERYPROF_SQLITE_RUNS_END_H
#define QUERYPROF_SQLITE_RUNS_END_H

#include "sqlite/runs/runs.h"

/* How it ends. In two registers. */
struct run_result {
	struct thread *thread; /* NULL: it is no longer sampled, and the run has no row */
	int rc;
	bool is_locked;     /* under the mutex of the statement's connection since before the real call */
	bool is_in_call;    /* of the host, which works for the run: no reset */
	bool has_statement; /* a preparation: it has made the statement that names it */
};

/* Ends a run, with a row in the log if it is worth one. A successful preparation has none, because
 * its statement includes its time. */
void run_end(struct run *run, struct run_result result);

/* What is rare: counts the run if it is not counted yet, and writes its row if it gets one. */
void runs_record_more(struct run *run, struct run_result result, bool is_counted, bool is_wanted);

/* Whether it has samples, or took long enough. */
bool runs_worth_logging(const struct run *run);

#endif
