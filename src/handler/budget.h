/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget: what sampling may cost, however many threads run queries.
 *
 * Two limits hold the number of signals. At most so many threads are sampled at the full rate
 * on the wall clock: with more in queries, the interval of each is as many times as long. And
 * what samples cost is at most a part of the CPU time of the queries (or of one processor's time,
 * where queries use less: they may wait): above it the intervals of both clocks stretch,
 * somewhat below it they return. They stretch, too, while the ring gets full, as the flusher waits for
 * a disk or a processor: a sample that was dropped is missing in a sum, one that was not taken is not.
 *
 * A stretched timer fires at a random moment of each of its intervals, and each of its
 * signals stands for as many periods. So a ns of a query is sampled with the chance 1 / interval
 * and then counts `interval`: sums are right for every thread, query and stack, whatever the
 * stretch was and however often it changed (inverse probability; one interval follows on another
 * as wire/timer_grid.h says). The time since a thread's last sample would not do: it may be
 * another query's. The variance of a sum is at most the sum of its samples' squared values; so
 * are all error bars computed.
 *
 * An interval has whole periods. Where a stretch lies between two numbers of them, a part of the
 * timers has the one and the rest the other, so that signals are as many as a limit allows, of few
 * threads, too (timer_stretch_of()).
 *
 * A handler looks, four times a second while anything is sampled, and a thread of the store's, if there is
 * one: it counts the threads in queries and the cost. No query does anything for it. A timer follows at its
 * next signal. A new thread counts those that are newer than the look, or thousands that begin at once would
 * all have the full rate until the next.
 *
 * The cost of samples is the handler's time by its clock readings, and the kernel's part of a
 * signal, which is calibrated, and the flusher's time, as far as it is that of storing samples.
 * No interval can lower the cost of watching statements.
 */
#ifndef QUERYPROF_HANDLER_BUDGET_H
#define QUERYPROF_HANDLER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

#define BUDGET_CHECK_NS 250000000ll

/* Measures what the kernel takes for a signal, about: by a hundred system calls. Before timers are armed. */
void budget_calibrate(void);

/* Does nothing where the last look was right before. `ring`: that of the samples. True while a timer may
 * be stretched, or above half of a limit: the next look is due soon, though nothing is sampled.
 * Async-signal-safe. */
bool budget_update(const struct ring *ring);

/* The handler's, at each signal: looks when it is time to. */
void budget_check(const struct ring *ring, uint64_t realtime_ns);

/* The CPU time that the flusher has used so far, and the samples that it stored. */
void budget_note_storing(uint64_t storing_ns, uint64_t stored);

/* Periods from one signal of a timer to the next, to begin with. `threads`: that have a slot. */
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

#endif
