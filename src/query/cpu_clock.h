/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's CPU clock, for the beginnings and ends of its queries.
 */
#ifndef QUERYPROF_QUERY_CPU_CLOCK_H
#define QUERYPROF_QUERY_CPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

/* CPU time of the calling thread, whose slot is `thread`. Never goes back. Notes in the
 * slot when it was read, and CLOCK_REALTIME then. */
uint64_t cpu_clock_now(struct thread *thread);

/* The same, where CLOCK_MONOTONIC is `now_ns`, without a system call if the clock was read
 * in the 20 us before: the thread is taken to have run since. At most this wrong, and only
 * if it was preempted meanwhile. */
uint64_t cpu_clock_estimate(struct thread *thread, uint64_t now_ns);

/* The CPU clock of a thread of this process. False: there is no such thread. */
bool cpu_clock_of(uint32_t thread_id, uint64_t *ns);

#endif
