/*
 * How a timer is armed, and what its signals stand for.
 *
 * A timer has a grid: points one period apart on its clock, with a random phase,
 * kept for the thread's life. A sample stands for the points that have passed; the
 * grid does not depend on what the thread does, so every ns of a query has the
 * same chance. When the handler disarms a timer because no query runs, and the next
 * query arms it again, the grid must be the same as if it had never stopped: a
 * fresh phase at each start would count short queries too often.
 *
 * The CPU clock needs more. The kernel looks at CPU timers only in its tick (HZ),
 * so a point that passes between two ticks is told at the later one, to whatever
 * runs then. While a timer stays armed that is fair: what runs at a tick gets all
 * points since the tick before, and is hit by ticks in proportion to its time.
 * After a re-arm it would not be. A query that starts between two ticks would be
 * told only of the points after its start; those between the tick before and its
 * start went to nobody, while points of a query that ended before the tick are
 * thrown away in the host's code: queries shorter than the tick would be counted
 * half or less. So the first tick after a re-arm counts all points since the tick
 * before it, as if the timer had never been disarmed. When that tick was is not
 * known, but how much CPU time a thread gets from one tick that hits it to the next
 * is: the kernel's tick on an idle machine, more on one where other threads run at
 * many ticks. This *gap* is learnt from signals that came without a re-arm between.
 *
 *   - re-arm with a point in the gap that went before: the timer *probes*, it is
 *     set to fire once at the next tick. There the handler counts the points in
 *     (now - gap, now], sets the timer on its grid, and stores a sample if there
 *     was a point. If the query has ended by then the signal finds none, and the
 *     timer is disarmed as ever;
 *   - re-arm without one: every point that the next tick can tell lies ahead, so
 *     the timer is set on its grid at once;
 *   - a period of more than half a tick does not show the gap in its overruns: now
 *     and then a probe is followed by a second one, which does.
 *
 * A thread that works for one query all its life (SQLite's sorter threads) ends before
 * the next tick, and often starts just behind one. Its timer is *whole*: it never
 * probes, its grid begins with the thread, and when the thread ends the kernel is asked
 * to tell at once the points since the newest signal.
 *
 * The clock of wall time is told exactly: its tick is 0 here and nothing probes. But a
 * period that is shorter than a signal takes would leave the thread no time at all: as
 * soon as the handler has returned the next signal is there. When many had more than
 * one point to tell, the timer fires at every second point only, and so on; each signal
 * then stands for as many. After many in time it is tried again.
 */
#ifndef QUERYPROF_HANDLER_TIMER_H
#define QUERYPROF_HANDLER_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sys.h"
#include "handler/thread.h"

/* The clock of each trace type. */
static inline clockid_t timer_clock(enum trace_type type)
{
	return type == TRACE_CPU ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

/* Length of the kernel's tick in ns, for the clocks that follow it; set before the
 * first timer is armed. */
extern uint64_t timer_tick_ns[TRACE_TYPES] __attribute__((visibility("hidden")));

/* From one signal to the next; a period on the CPU clock. */
static inline uint64_t timer_interval(const struct thread_timer *timer)
{
	return timer->period_ns << timer->slowed;
}

/* Time from the newest point of the grid at which the timer fires to `now`. */
static inline uint64_t timer_since_point(const struct thread_timer *timer, uint64_t now)
{
	uint64_t period = timer_interval(timer);

	return (now % period + period - timer->grid_ns % period) % period;
}

/* The first point after `now`. */
static inline uint64_t timer_next_point(const struct thread_timer *timer, uint64_t now)
{
	return now + timer_interval(timer) - timer_since_point(timer, now);
}

/* Points in (now - window, now]. */
static inline uint64_t timer_points(const struct thread_timer *timer, uint64_t now, uint64_t window)
{
	uint64_t since = timer_since_point(timer, now);

	return since < window ? 1 + (window - 1 - since) / timer->period_ns : 0;
}

/* The gap of a thread that has not been measured yet: what others have. */
extern uint64_t timer_usual_gap_ns __attribute__((visibility("hidden")));

/* CPU time that the thread is expected to get between two ticks; 0 on clocks that do
 * not follow the tick. */
static inline uint64_t timer_gap(const struct thread_timer *timer, enum trace_type type)
{
	if (timer_tick_ns[type] == 0)
		return 0;
	if (timer->gap_ns != 0)
		return timer->gap_ns;
	uint64_t usual = __atomic_load_n(&timer_usual_gap_ns, __ATOMIC_RELAXED);
	return usual != 0 ? usual : timer_tick_ns[type];
}

/* Whether the overruns of a timer on its grid show the gap. */
static inline bool timer_shows_gap(const struct thread_timer *timer, enum trace_type type)
{
	return timer->period_ns <= timer_tick_ns[type] / 2;
}

/* Makes the timer fire once, at the next tick. Relative: an absolute time of now
 * would have passed and fire here. */
static inline int timer_set_to_probe(const struct thread_timer *timer)
{
	return sys_timer_settime(timer->id, 0, 1, 0);
}

/* Sets the timer on its grid. */
static inline int timer_set_on_grid(const struct thread_timer *timer, uint64_t now)
{
	return sys_timer_settime(timer->id, TIMER_ABSTIME, timer_next_point(timer, now),
	                         timer_interval(timer));
}

#endif
