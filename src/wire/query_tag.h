/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tag of a run, for which a thread's samples count. Calls push and pop tags, the handler finds
 * the running one and adds to its counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"
#include "wire/timer_grid.h"
#include "wire/wait.h"

struct open_run;
struct opcode_locations;

/* Counters of one run of a query, updated by its samples. Memory is never unmapped. Written with
 * relaxed atomics, because a run may have several threads. */
struct query_counts {
	/* Up to the beginning of `start`: what each run touches (base/hot_path.h). */
	uint64_t labels;        /* the number of the query's own label set, 0: none */
	uint64_t taken;         /* samples of any type, also outside its calls */
	bool is_counted;        /* atomic: a count is not 0. Else a run that begins clears none */
	bool has_threads;       /* several have the sums, which are atomic, and zero at first */
	bool has_waits;         /* else the sums are of an earlier run */
	struct run_start start; /* its `state` is atomic, with release and acquire */
	uint64_t samples[SAMPLE_QUERY_TYPES];
	uint64_t weights[SAMPLE_QUERY_TYPES];
	uint64_t dropped;
	uint64_t truncated;
	uint64_t worker_cpu_ns; /* not the handler's: CPU time of its worker threads */
	/* A SQLite statement, and where its running opcode is found (handler/opcode.h); NULL: not known. */
	const void *statement;
	const struct opcode_locations *opcodes;
	uint64_t worker_wait_ns; /* atomic; not the handler's: what its worker threads waited */
	uint64_t cost_ns;        /* what its samples took */
	uint64_t waits[WAIT_SUMS];
	/* What shows whether the run is open, NULL: nothing. And the slot of the thread that worked for it
	 * last, which alone is between its calls. Both stay from run to run. */
	const struct open_run *open;
	const void *slot;
};

/* Before a count is changed. Relaxed: it belongs to the counts, and a run that begins comes later. */
static inline void query_counts_begin(struct query_counts *counts)
{
	__atomic_store_n(&counts->is_counted, true, __ATOMIC_RELAXED);
}

/* The tag of samples while a query runs on their thread. */
struct query_tag {
	uint64_t number; /* of the push, unique on the slot */
	bool ended;      /* atomic: the place is free. Another thread may end a call that began here */
	struct query_key key;
	uint64_t period_ns[TIMER_CLOCKS]; /* 0: this query takes no such samples */
	uint64_t off_cpu_period_ns;       /* of its waits' samples */
	struct query_counts *counts;      /* never NULL */
	/* The stack frame of the call that pushed the tag, and its return address: the query runs
	 * inside it, see handler/running.h. 0: no such test. */
	uintptr_t frame, frame_return;
	/* For hosts whose steps cannot be hooked: the query runs only while the owner of its
	 * connection's mutex is this thread. Points to a cell in memory that is never unmapped.
	 * The cell holds the address of the owner's thread id, or NULL once the connection was
	 * freed (then the query does not run). NULL: no such test. */
	const volatile int *const volatile *mutex_owner;
};
