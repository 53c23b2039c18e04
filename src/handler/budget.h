/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget: the maximum cost of sampling, however many threads run queries.
 *
 * Two limits bound the number of signals. At most a number of threads is sampled at the full rate on
 * the wall clock: with more in queries, the interval of each is multiplied. And the cost of samples
 * is at most a part of the CPU time of the queries (or of one processor's time, if queries use less
 * because they wait): above it the intervals of both clocks stretch, somewhat below it they return.
 * They also stretch while the ring fills up because the flusher waits for a disk or a processor: a
 * dropped sample is missing in a sum, but one that was not taken is not.
 *
 * A stretched timer fires at a random moment of each of its intervals, and each of its signals
 * represents as many periods. So a ns of a query is sampled with the probability 1 / interval and
 * then counts `interval`: sums are unbiased for every thread, query and stack, whatever the stretch
 * was and however often it changed (inverse probability; intervals follow each other as
 * wire/timer_grid.h explains). The time since a thread's last sample would be wrong, because it may
 * belong to another query. The variance of a sum is at most the sum of its samples' squared values;
 * all error bars are computed from that.
 *
 * An interval has whole periods. If a stretch is between two numbers of them, a part of the timers
 * has the one and the rest the other, so that the number of signals matches the limit, even with few
 * threads (timer_stretch_of()).
 *
 * A handler checks four times a second while anything is sampled, and so does a thread of the store,
 * if there is one: it counts the threads in queries and the cost. Queries do no work for it. A timer
 * follows at its next signal. A new thread counts those that are newer than the check, otherwise
 * thousands that begin together would all have the full rate until the next.
 *
 * The cost of samples is the handler's time by its clock readings, the kernel's part of a signal,
 * which is calibrated, and the part of the flusher's time that stores samples. No interval can lower
 * the cost of the wrappers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

#define BUDGET_CHECK_NS 250000000ll

/* Measures the approximate time of a signal in the kernel: by a hundred system calls. Before
 * timers are armed. */
void budget_calibrate(void);

/* Does nothing directly after the last check. `ring`: that of the samples. True while a timer may
 * be stretched, or above half of a limit: the next check is due soon, even if nothing is sampled.
 * Async-signal-safe. */
bool budget_update(const struct ring *ring);

/* The handler's, at each signal: looks when it is time to. */
void budget_check(const struct ring *ring, uint64_t realtime_ns);

/* The CPU time that the flusher has used so far, and the samples that it stored. */
void budget_note_storing(uint64_t storing_ns, uint64_t stored);

/* The initial number of periods from one signal of a timer to the next. `threads`: that have a slot. */
uint32_t budget_first_stretch(const struct thread_timer *timer, enum timer_clock clock, uint64_t threads);

enum budget_figure {
	BUDGET_IN_QUERIES,   /* threads in queries that are sampled on the wall clock, at the last look */
	BUDGET_CPU_STRETCH,  /* periods from one signal to the next, rounded up */
	BUDGET_REAL_STRETCH, /* the same on the wall clock */
	BUDGET_SIGNAL_NS,    /* the kernel's part of a signal, about */
	BUDGET_COST_NS,      /* of all samples so far: handlers and the kernel */
	BUDGET_COST_PPM,     /* of samples, with storing them, to the time above; of the last second or so */
};
uint64_t budget_figure(enum budget_figure which);

/* In a forked child, whose counters are 0. */
void budget_after_fork(void);
