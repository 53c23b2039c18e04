/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule by which a timer is armed, and what its signals represent.
 *
 * A timer has a grid: points one period apart on its clock, with a random phase, which does not
 * change while the period is the same. A signal represents the points that have passed since the
 * previous one, and they count for the code that runs at the signal. The grid does not depend on what
 * the thread does, so every ns of a query has the same probability.
 *
 * The kernel checks CPU timers only in its tick. So a signal of the CPU timer comes at a tick, with
 * all points since the previous tick. That is fair while the timer remains armed: ticks hit a query
 * in proportion to its time, and each brings the points of one tick, whichever thread used the time
 * in between. (It is fair as far as the same work takes equally long at all times between two ticks;
 * accuracy_bench --phases measures that. A second condition is that no other thread runs in step with
 * the ticks: a thread that wakes just before each tick gets all of them.)
 *
 * A timer that is armed between two ticks lacks the earlier points, so queries shorter than a tick
 * would count half or less. Therefore the CPU timer remains armed when no query runs; a signal that
 * finds none is counted and costs one empty handler. After a second of CPU time without a query the
 * handler disarms the timer, for a host that has finished its queries. The query that arms it again
 * is counted too seldom on a busy machine: the kernel accounts the thread's time for the call, may
 * find that its turn is over, and the tick at the turn's end never comes. So the second doubles each
 * time, and few queries are affected.
 *
 * When a CPU timer is armed, for the first time or again, it fires at the next tick, whether or not a
 * point has passed. That signal represents the points of one tick's length before it, or of all the
 * time since the timer was armed if that is longer: the probability that a tick hits a query is the
 * query's time divided by that length. This replaces the points after the last tick of a thread that
 * ends. A thread that waits occasionally is hit by ticks at random; at its end that is a tick's
 * length instead of half. If it has waited since the timer was armed, the signal represents the time
 * since then and one tick.
 *
 * SQLite's sorter threads exist for one query, often shorter than a tick, and start directly after a
 * tick on a busy machine. Such a thread's timer is *whole*: its grid begins with the thread, and when
 * the thread ends it makes the kernel deliver the points since the newest signal.
 *
 * The clock of real time is exact, and its signals interrupt the host's waits. So the first signal
 * that finds no query disarms its timer, which is armed again on the same grid. A period shorter than
 * a signal takes would leave the thread no time at all: if many signals come late, the timer fires
 * only at every second point, then at every fourth, and so on; each signal represents as many. After
 * many in time it becomes faster again.
 *
 * The budget (handler/budget.h) stretches intervals: a signal then represents as many periods. The
 * clock of a stretched timer is divided into cells, one interval each, and the timer fires at one
 * random moment of each cell. The end of a cell is the beginning of the next one, whose length is the
 * stretch at the time of the signal. A cell's moment is drawn when its length is known, and is
 * independent of later cells. So each ns of any cell has the probability 1 / length, and then counts
 * the length: sums are unbiased at each moment, however often the stretch changes. One common moment
 * for all cells would not work: a timer sees a change at its next signal, so those with a late moment
 * in their cells would follow first. (An unstretched timer keeps its phase, because the kernel
 * repeats it. A change of the stretch shifts it by at most one period.)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sys.h"

/* The clocks of a thread's timers. */
enum timer_clock {
	TIMER_CPU,  /* of the thread */
	TIMER_REAL, /* CLOCK_MONOTONIC */
	TIMER_CLOCKS,
};

struct thread_timer {
	/* Atomic: the kernel's number of the timer, and its signal, packed by word_of() of
	 * timers/timers.c; 0: there is none. Other threads read it. */
	uint64_t kernel;
	/* Access by TIMER_GET() and TIMER_SET(); also the fields below that are marked. */
	volatile bool armed; /* cleared by the handler when it disarms */
	/* Atomic: period_ns while it is armed with the present signal, else 0. A query that wants this
	 * period has nothing to do. */
	uint64_t follows_ns;
	uint64_t period_ns;
	uint64_t grid_ns; /* a point of the timer's grid on its clock; the next one, if none repeats */
	uint64_t cell_ns; /* the beginning of that point's cell */
	bool repeats;     /* each cell has its point at the same place: the kernel counts them */
	/* The clock when the timer was armed, until its first signal; then 0. Only for a clock
	 * that is checked in ticks. */
	volatile uint64_t armed_ns;
	uint64_t waits;           /* of the thread until then, see sys_voluntary_switches() */
	uint64_t idle_ns;         /* periods without a query, since one was last seen to run */
	uint64_t idle_max_ns;     /* the timer is disarmed after so many */
	bool whole;               /* the grid began with the thread, see above */
	uint64_t fired;           /* points at which it fired; of a whole timer only */
	uint32_t stretch;         /* periods from one signal to the next, see above; TIMER_SET() */
	uint32_t rounding;        /* of the stretch, below TIMER_STRETCH_PARTS; for ever */
	uint32_t slowed;          /* fires at every 2^slowed-th point only, see above; TIMER_SET() */
	uint32_t behind, in_time; /* how many recently came late, and in time since the last of them */
};

/* Read by the thread that checks the budget while the timer's thread writes. Relaxed: each field
 * is independent, and an approximate current interval suffices. The only writer of a field may
 * read it without an atomic. */
#define TIMER_GET(timer, field) __atomic_load_n(&(timer)->field, __ATOMIC_RELAXED)
#define TIMER_SET(timer, field, value) __atomic_store_n(&(timer)->field, (value), __ATOMIC_RELAXED)

static inline bool timer_exists(const struct thread_timer *timer)
{
	return __atomic_load_n(&timer->kernel, __ATOMIC_RELAXED) >> 63 != 0;
}

/* `timer` exists. */
static inline int timer_id(const struct thread_timer *timer)
{
	return (int)(uint32_t)__atomic_load_n(&timer->kernel, __ATOMIC_RELAXED);
}

/* The timer's signal, 0: there is no timer. */
static inline int timer_signal(const struct thread_timer *timer)
{
	return (int)(__atomic_load_n(&timer->kernel, __ATOMIC_RELAXED) << 1 >> 33);
}

static inline clockid_t timer_clock_id(enum timer_clock clock)
{
	return clock == TIMER_CPU ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

/* Periods from one point at which the timer fires to the next. */
static inline uint64_t timer_step(const struct thread_timer *timer)
{
	return (uint64_t)TIMER_GET(timer, stretch) << TIMER_GET(timer, slowed);
}

/* From one signal to the next. */
static inline uint64_t timer_interval(const struct thread_timer *timer)
{
	return TIMER_GET(timer, period_ns) * timer_step(timer);
}

/* Time from the newest point of the grid at which the timer fires to `now`. */
static inline uint64_t timer_since_point(const struct thread_timer *timer, uint64_t now)
{
	uint64_t period = timer_interval(timer);

	return (now % period + period - timer->grid_ns % period) % period;
}

/* The first point after `now`, and not before a grid that begins later. */
static inline uint64_t timer_next_point(const struct thread_timer *timer, uint64_t now)
{
	return now < timer->grid_ns ? timer->grid_ns
	                            : now + timer_interval(timer) - timer_since_point(timer, now);
}

/* Periods represented by the points in (now - window, now]. */
static inline uint64_t timer_points(const struct thread_timer *timer, uint64_t now, uint64_t window)
{
	uint64_t since = timer_since_point(timer, now);

	return since < window ? (1 + (window - 1 - since) / timer_interval(timer)) * timer_step(timer) : 0;
}

/* Sets the timer on its grid. */
static inline int timer_set_on_grid(const struct thread_timer *timer, uint64_t now)
{
	return sys_timer_settime(timer_id(timer), TIMER_ABSTIME, timer_next_point(timer, now),
	                         timer_interval(timer));
}

/* The kernel's timer does not run. */
static inline void timer_mark_disarmed(struct thread_timer *timer)
{
	TIMER_SET(timer, follows_ns, 0);
	TIMER_SET(timer, armed, false);
	timer->armed_ns = timer->idle_ns = 0;
}
