/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/timer.h"

uint64_t timer_tick_ns;
uint32_t timer_stretch[TIMER_CLOCKS] = { TIMER_STRETCH_PARTS, TIMER_STRETCH_PARTS };

void timer_disarm(struct thread_timer *timer)
{
	if (timer_exists(timer) && timer->armed)
		sys_timer_settime(timer_id(timer), 0, 0, 0);
	timer_mark_disarmed(timer);
}

/* The points of the first signal after the timer was armed, at a tick. */
static uint64_t take_first_tick(struct thread_timer *timer, enum timer_clock clock)
{
	uint64_t now = clock_ns(timer_clock_id(clock)), since = now - timer->armed_ns;

	/* A thread that waits is hit by ticks at random: the next one after a point is a tick's length
	 * away, on average, instead of half. */
	if (sys_waits() != timer->waits)
		since += timer_tick_ns;
	timer->armed_ns = 0;
	timer_set_on_grid(timer, now);
	return timer_points(timer, now, since > timer_tick_ns ? since : timer_tick_ns);
}

/* More than every fifth late: the timer slows down. All of so many in time: it is faster
 * again. Any machine has the time for an interval of this length; if signals come late
 * then it is because other threads run. */
#define BEHIND_LATE 4
#define BEHIND_MOST 128
#define IN_TIME_MOST 4096
#define INTERVAL_ENOUGH_NS 100000

static void keep_pace(struct thread_timer *timer, bool overrun)
{
	uint32_t slowed = timer->slowed;

	if (timer->slowed == 0 && timer_interval(timer) >= INTERVAL_ENOUGH_NS)
		return;
	if (timer->period_ns == 0) /* of a timer that was deleted; it is being made anew */
		return;
	/* Late, too, when the way here alone took a good part of the interval. */
	uint64_t now = clock_ns(timer_clock_id(TIMER_REAL));
	bool behind = overrun || timer_since_point(timer, now) > timer_interval(timer) / 4;
	if (behind)
		timer->behind += BEHIND_LATE;
	else if (timer->behind > 0)
		timer->behind--;
	timer->in_time = behind ? 0 : timer->in_time + 1;
	if (timer->behind >= BEHIND_MOST && timer_interval(timer) < INTERVAL_ENOUGH_NS)
		slowed++;
	else if (timer->in_time >= IN_TIME_MOST && slowed > 0)
		slowed--;
	if (timer->behind > BEHIND_MOST)
		timer->behind = BEHIND_MOST;
	if (slowed == timer->slowed)
		return;
	timer->slowed = slowed;
	timer->behind = timer->in_time = 0;
	timer_set_on_grid(timer, now);
}

/* Whoever knows the clock to the ns knows nothing of this (MurmurHash's last step). */
static uint64_t scatter(uint64_t number)
{
	number = (number ^ number >> 33) * 0xff51afd7ed558ccdull;
	number = (number ^ number >> 33) * 0xc4ceb9fe1a85ec53ull;
	return number ^ number >> 33;
}

uint64_t timer_change_stretch(struct thread_timer *timer, uint64_t now, uint32_t stretch)
{
	uint64_t random = scatter(now ^ (uintptr_t)timer);
	uint64_t begin = now - timer_since_point(timer, now) + random % timer_interval(timer);

	timer->changed = true;
	timer->stretch = stretch;
	timer->grid_ns = begin + 1 + scatter(random) % timer_interval(timer);
	return now >= timer->grid_ns ? timer_points(timer, now, now - timer->grid_ns + 1) : 0;
}

/* Behind a signal, whose clock this is. A whole timer lives for one query. */
static uint64_t follow_stretch(struct thread_timer *timer, enum timer_clock clock)
{
	uint32_t stretch = timer_stretch_of(timer, clock);
	uint64_t now, periods;

	if (__builtin_expect(stretch == timer->stretch, 1) || timer->whole || timer->period_ns == 0)
		return 0;
	now = clock_ns(timer_clock_id(clock));
	periods = timer_change_stretch(timer, now, stretch);
	timer_set_on_grid(timer, now);
	return periods;
}

/* Periods are rounded at random, or those of less than half of one would never count. On a CPU
 * clock each signal comes at a tick, and stands for one; on the wall clock there is one. */
static uint64_t take_lent(struct thread_timer *timer, enum timer_clock clock)
{
	uint64_t lent = clock == TIMER_CPU ? __atomic_load_n(&timer->lent_ns, __ATOMIC_ACQUIRE)
	                                   : __atomic_exchange_n(&timer->lent_ns, 0, __ATOMIC_ACQ_REL);

	if (timer->period_ns == 0 ||
	    (clock == TIMER_CPU &&
	     clock_ns(CLOCK_THREAD_CPUTIME_ID) > __atomic_load_n(&timer->lent_until_ns, __ATOMIC_RELAXED)))
		return 0;
	return (lent + scatter(clock_ns(CLOCK_MONOTONIC)) % timer->period_ns) / timer->period_ns;
}

/* A signal of the old interval that was on its way when the timer got a new one. (Kernels from 6.13
 * on take such signals back.) */
static bool is_stale(struct thread_timer *timer, enum timer_clock clock)
{
	timer->changed = clock_ns(timer_clock_id(clock)) < timer->grid_ns;
	return timer->changed;
}

static uint32_t clip(uint64_t periods)
{
	return periods < UINT32_MAX ? (uint32_t)periods : UINT32_MAX;
}

uint32_t timer_take_points(struct thread_timer *timer, enum timer_clock clock, int overrun)
{
	if (timer->armed_ns != 0)
		return (uint32_t)take_first_tick(timer, clock);

	/* The kernel caps an overrun at INT_MAX. */
	uint64_t points = 1 + (uint64_t)(overrun > 0 ? overrun : 0);
	uint64_t periods = points * timer_step(timer);
	if (__builtin_expect(timer_is_shared(timer), 0))
		return clip(take_lent(timer, clock));
	if (__builtin_expect(timer->changed, 0) && is_stale(timer, clock))
		return 0;
	timer->told += points;
	if (clock == TIMER_REAL)
		keep_pace(timer, points > 1);
	return clip(periods + follow_stretch(timer, clock));
}

void timer_stay_idle(struct thread_timer *timer, enum timer_clock clock, uint32_t points, bool waits)
{
	timer->idle_ns += points * timer->period_ns;
	/* Two points at least, whatever the period. */
	bool is_long = timer->idle_ns > timer->idle_max_ns + timer->period_ns;
	/* What waits for its next step is not seen to start it. Its CPU timer goes on; in real
	 * time it has samples again with the thread's next query, as they interrupt the host's
	 * sleeps. */
	if (clock == TIMER_CPU ? is_long && !waits : is_long || !waits) {
		timer->idle_max_ns <<= clock == TIMER_CPU;
		timer_disarm(timer);
	}
}
