/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared timer: of threads for which the kernel refused one of their own (RLIMIT_SIGPENDING).
 *
 * Each such thread has the grids of wire/timer_grid.h, with cells that are as long as there are many such
 * threads. It is lent a kernel timer when its clock is near its next point, and only for that one. A signal
 * stands for the points that its clock has passed. So a timer that comes late, or is taken away with its
 * signal on its way, makes a sample late, and nothing is lost. (Ticks would not do as a measure of CPU time:
 * a turn that ends between two ticks has none of them, which is so for each thread that reads its CPU clock.)
 *
 * The kernel ties a timer to a thread when it makes it, so each is made anew. Some timers that do nothing
 * keep slots for them from before the limit is reached. A CPU clock is never faster than the wall's: a
 * thread whose point is far away is not looked at until it can be near.
 */
#ifndef QUERYPROF_TIMERS_SHARED_TIMER_H
#define QUERYPROF_TIMERS_SHARED_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

#define SHARED_TIMER_SLOTS 8

/* Any thread that has made a timer: with many of them, takes places, for when there are no others
 * any more. */
void shared_timer_open(void);

/* On a thread that was refused a timer: before it is armed as one that the shared timer visits, and behind
 * that, where it was none. False: there is no shared timer. */
bool shared_timer_prepare(struct thread_timer *timer, enum timer_clock clock, uint64_t period_ns);
void shared_timer_join(void);

/* Whether threads that want timers of their own must wait: not all slots are kept. */
bool shared_timer_comes_first(void);

/* How many timers it visits. */
uint32_t shared_timer_members(void);

/* The pacer only: looks where timers are due. Returns how long to wait until the next look; 0: there is
 * no thread to visit. */
uint64_t shared_timer_visit(void);

/* Waits until the pacer is not between the look at the signal's number and the setting of the
 * timer; then stops the timer if it sends that signal. */
void shared_timer_silence(int number);

/* In a forked child. */
void shared_timer_after_fork(void);

#endif
