/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other processes may know of a run that has not ended. The thread that works for the run writes
 * it and never reads it: under `record` it is in memory that the command reads (collect/open_runs.h).
 */
#pragma once

#include "wire/record.h"
#include "wire/shared_front.h"

struct open_run {
	uint64_t shown; /* odd: the rest describes an open run. Each beginning and each end adds 1 */
	struct query_key key;
	uint64_t start_ns;     /* CLOCK_MONOTONIC */
	uint64_t entered_ns;   /* the present call's beginning; 0: no call works for it */
	uint64_t execution_ns; /* of the calls that have ended */
	uint32_t thread_id;    /* that began it */
	uint32_t has_id;       /* the user has given it one: open_run_entry.query_id */
};

#define OPEN_RUN_TEXT_MAX 4096u
#define OPEN_RUN_ID_MAX 128u

/* And what changes with its statement only. */
struct open_run_entry {
	struct open_run run;
	struct query_key described; /* the run that `start` was of */
	struct run_start start;
	uint64_t publish_after_ns; /* UINT64_MAX: never */
	uint32_t has_threads, text_size;
	char text[OPEN_RUN_TEXT_MAX]; /* a longer one is cut */
	/* With their final zeros; empty: not known. */
	char database[512], library[512];
	char query_id[OPEN_RUN_ID_MAX]; /* changes with the run */
} __attribute__((aligned(64)));

#define OPEN_RUNS 2048u /* untouched pages cost nothing */

struct open_runs {
	struct shared_front front;
	uint32_t had_user_ids;
	struct open_run_entry entries[OPEN_RUNS];
};
