/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's timers of a thread.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hot_path.h"
#include "collect/state.h"
#include "handler/thread.h"

/* Limits of a period. Below the first the kernel spends its time on signals. */
#define PERIOD_MIN_NS 10000ull /* 10 us */
#define PERIOD_MAX_NS 3600000000000ull

/* Whether a signal that the calling thread took by waiting for it (sigwaitinfo) belongs to a
 * timer; then that timer is stopped, because taking it would have made it continue. */
bool sampler_acquired_signal(const siginfo_t *info);

/* The calling thread, on which no query runs, is about to wait: its timer of real time is
 * stopped now, if it still ticks, instead of by its next signal, which would cut the wait
 * short. Async-signal-safe. */
void sampler_rest(struct thread *thread);

/* Sets the tick of handler/timer.h. */
void timers_init(void);

/* Arms the timer with `period_ns`, creating it when needed. Cold: sampler_push()
 * calls it only when the timer is not armed with that period. Keeps errno. */
COLD_PATH void timers_arm(struct thread *thread, enum timer_clock clock, uint64_t period_ns);

/* The calling thread ends: delivers the last points of its whole timer of the CPU clock. */
void timers_deliver_rest(const struct thread *thread);

/* Deletes the thread's kernel timers. Any thread, when no other does the same. */
void timers_delete(struct thread *thread);

/* Stops the calling thread's timers. Signals that they have sent arrive before this returns, or are
 * blocked. */
void timers_stop(struct thread *thread);

/* Whether the calling thread blocks the signal. A timer's signal would then be delivered to the
 * host when it waits for signals, and continue with each that it takes. */
bool timers_are_blocked(int number);

/* The kernel no longer has any of the timers (a forked child). */
void timers_forget(struct thread *thread);

/* Arms what the query wants and is not armed. On every start of a query. */
static inline void timers_follow(struct thread *thread, const struct query_tag *tag)
{
#pragma GCC unroll 2
	for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
		uint64_t period_ns = tag->period_ns[clock];
		/* Relaxed: timers_arm() checks a signal that moves right now. */
		if (__builtin_expect(TIMER_GET(&thread->timers[clock], follows_ns) != period_ns, 0) &&
		    period_ns != 0)
			timers_arm(thread, (enum timer_clock)clock, period_ns);
	}
}
