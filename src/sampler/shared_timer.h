/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared timer: of threads for which the kernel refused one of their own
 * (RLIMIT_SIGPENDING). It visits one clock of one of them at a time, in turn, for some ms.
 *
 * The kernel ties a timer to a thread when it makes it, so each visit makes the timer anew. Some
 * timers that do nothing keep places for it from before the limit is reached: the place of the
 * visit before is free only when its last signal has been handled.
 * Of N clocks each is visited for one N-th of the time. On a CPU clock each tick that hits the
 * thread in its visit fires, and stands for N ticks. A tick may take the thread's processor away, and then
 * its signal comes when the thread has one again, which may be after the visit: so a visit ends at a point of
 * the thread's CPU clock, and its timer stays until the clock has passed that. On the wall clock one signal
 * comes at a random time of a visit, and stands for N visits. The length of a visit is random, too, so that
 * it does not keep time with what the threads do.
 */
#ifndef QUERYPROF_SAMPLER_SHARED_TIMER_H
#define QUERYPROF_SAMPLER_SHARED_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

#define SHARED_TIMER_PLACES 8

/* Any thread that has made a timer: with many of them, takes places, for when there are no others
 * any more. */
void shared_timer_open(void);

/* On a thread that was refused a timer: the shared one will visit it. False: there is none. */
bool shared_timer_join(struct thread_timer *timer, enum timer_clock clock, uint64_t period_ns);

/* Whether threads that want timers of their own must wait: not all places are kept. */
bool shared_timer_comes_first(void);

/* How many timers it visits. */
uint32_t shared_timer_members(void);

/* The pacer only: ends the visit, begins the next. Returns how long to wait until the one after that;
 * 0: there is nobody to visit. */
uint64_t shared_timer_visit(void);

/* Waits until the pacer is not between the look at the signal's number and the setting of the
 * timer; then stops the timer if it sends that signal. */
void shared_timer_silence(int number);

/* In a forked child. */
void shared_timer_after_fork(void);

#endif
