/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler's work on a timer whose signal came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/timer_grid.h"

/* Length of the kernel's tick in ns; set before the first timer is armed. */
extern uint64_t timer_tick_ns __attribute__((visibility("hidden")));

/* The stretch that a clock's timers shall have, in 256ths; atomic. A timer's own stretch is an integer:
 * each timer rounds with its own `rounding`, so that the average over all timers is right. */
#define TIMER_STRETCH_MAX 65536u
#define TIMER_STRETCH_PARTS 256u
extern uint32_t timer_stretch[TIMER_CLOCKS] __attribute__((visibility("hidden")));

/* Relaxed: it is independent of other memory. */
static inline uint32_t timer_stretch_of(const struct thread_timer *timer, enum timer_clock clock)
{
	return (__atomic_load_n(&timer_stretch[clock], __ATOMIC_RELAXED) + timer->rounding) /
	       TIMER_STRETCH_PARTS;
}

/* The kernel repeats it, and must continue. A whole timer exists for one query. */
static inline bool timer_goes_on(const struct thread_timer *timer, enum timer_clock clock)
{
	return timer->repeats && (timer->stretch == timer_stretch_of(timer, clock) || timer->whole);
}

void timer_disarm(struct thread_timer *timer);

/* Advances to the cell whose point comes next after `now`, on the timer's clock; cells that begin
 * from now on have this stretch. Does not set the timer. Returns the periods of the points that
 * passed by `now`. For a repeating timer these are only the points after its newest one, because
 * the kernel has counted the others. */
uint64_t timer_pass(struct thread_timer *timer, uint64_t now, uint32_t stretch);

/* The periods that a signal represents; 0: none has passed. */
uint32_t timer_consume_points(struct thread_timer *timer, enum timer_clock clock, int overrun);

/* The signal, which represents `points` periods, found no query that wants it. Disarms the timer
 * if it is time. `waits`: a query may continue without a push. */
void timer_stay_idle(struct thread_timer *timer, enum timer_clock clock, uint32_t points, bool waits);
