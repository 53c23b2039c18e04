/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other processes may know of a run that has not ended. The thread that works for the run writes it and
 * never reads it: under `record` it lies in memory that the command holds, too (collect/open_runs.h).
 */
#ifndef QUERYPROF_WIRE_OPEN_RUN_H
#define QUERYPROF_WIRE_OPEN_RUN_H

#include "wire/record.h"

struct open_run {
	uint64_t shown; /* odd: the rest is that of a run that is open */
	struct query_key key;
	uint64_t start_ns;     /* CLOCK_MONOTONIC */
	uint64_t entered_ns;   /* the present call's beginning; 0: no call works for it */
	uint64_t execution_ns; /* of the calls that have ended */
	uint32_t thread_id;    /* that began it */
};

/* And what changes with its statement only. */
struct open_run_entry {
	struct open_run run;
	struct query_key described; /* the run that `start` was of */
	struct run_start start;
	uint64_t publish_after_ns; /* UINT64_MAX: never */
	uint32_t has_threads, text_size;
	char text[START_TEXT_MAX];
} __attribute__((aligned(64)));

#define OPEN_RUNS 8192u /* untouched pages cost nothing */

struct open_runs {
	uint32_t used;    /* atomic: of the entries, those before it */
	uint32_t is_left; /* a forked child writes here, too */
	uint32_t had_own_ids;
	struct open_run_entry entries[OPEN_RUNS];
};

#endif
