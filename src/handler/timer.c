/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/timer.h"

uint64_t timer_tick_ns;
uint32_t timer_stretch[TIMER_CLOCKS] = { TIMER_STRETCH_PARTS, TIMER_STRETCH_PARTS };

void timer_disarm(struct thread_timer *timer)
{
	if (timer_exists(timer) && TIMER_GET(timer, armed))
		sys_timer_settime(timer_id(timer), 0, 0, 0);
	timer_mark_disarmed(timer);
}

/* If more than every fifth is late, the timer slows down. If all of so many are in time, it
 * becomes faster again. Any machine has the time for an interval of this length; late signals are
 * then due to other threads. */
#define BEHIND_LATE 4
#define BEHIND_MOST 128
#define IN_TIME_MOST 4096
#define INTERVAL_ENOUGH_NS 100000

static void keep_pace(struct thread_timer *timer, bool overrun)
{
	uint32_t slowed = timer->slowed;

	if (timer->slowed == 0 && timer_interval(timer) >= INTERVAL_ENOUGH_NS)
		return;
	if (timer->period_ns == 0) /* of a timer that was deleted, and is being made again */
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
	TIMER_SET(timer, slowed, slowed);
	timer->behind = timer->in_time = 0;
	timer_set_on_grid(timer, now);
}

/* The clock, known to the ns, reveals nothing about this (MurmurHash's last step). */
static uint64_t scatter(uint64_t number)
{
	number = (number ^ number >> 33) * 0xff51afd7ed558ccdull;
	number = (number ^ number >> 33) * 0xc4ceb9fe1a85ec53ull;
	return number ^ number >> 33;
}

uint64_t timer_pass(struct thread_timer *timer, uint64_t now, uint32_t stretch)
{
	uint64_t random = now ^ (uintptr_t)timer, periods = 0;

	if (timer->repeats && now >= timer->grid_ns) {
		uint64_t newest = now - timer_since_point(timer, now);
		timer->cell_ns += newest - timer->grid_ns;
		TIMER_SET(timer, grid_ns, newest);
		periods -= timer_step(timer);
		timer->repeats = false;
	}
	/* Signed, because a CPU clock's first cell may begin before the clock does. */
	while ((int64_t)(now - timer->grid_ns) >= 0) {
		uint64_t end = timer->cell_ns + timer_interval(timer), cells;
		periods += timer_step(timer);
		TIMER_SET(timer, stretch, stretch);
		cells = (int64_t)(now - end) > 0 ? (now - end) / timer_interval(timer) : 0;
		periods += cells * timer_step(timer);
		timer->cell_ns = end + cells * timer_interval(timer);
		random = scatter(random);
		TIMER_SET(timer, grid_ns, timer->cell_ns + 1 + random % timer_interval(timer));
	}
	return periods;
}

/* The points of the first signal after the timer was armed, at a tick. */
static uint64_t consume_first_tick(struct thread_timer *timer, enum timer_clock clock)
{
	uint64_t now = clock_ns(timer_clock_id(clock)), since = now - timer->armed_ns, periods;

	/* A thread that waits is hit by ticks at random: the next one after a point is a tick's
	 * length away, on average, instead of half. */
	if (sys_voluntary_switches() != timer->waits)
		since += timer_tick_ns;
	if (since < timer_tick_ns)
		since = timer_tick_ns;
	timer->armed_ns = 0;
	if (timer->repeats) {
		periods = timer_points(timer, now, since);
	} else {
		timer_pass(timer, now - since, timer_stretch_of(timer, clock));
		periods = timer_pass(timer, now, timer_stretch_of(timer, clock));
	}
	timer_set_on_grid(timer, now);
	return periods;
}

static uint32_t clip(uint64_t periods)
{
	return periods < UINT32_MAX ? (uint32_t)periods : UINT32_MAX;
}

uint32_t timer_consume_points(struct thread_timer *timer, enum timer_clock clock, int overrun)
{
	if (timer->armed_ns != 0)
		return (uint32_t)consume_first_tick(timer, clock);

	/* The kernel caps an overrun at INT_MAX. */
	uint64_t points = 1 + (uint64_t)(overrun > 0 ? overrun : 0);
	uint64_t periods = timer->repeats ? points * timer_step(timer) : 0;
	timer->fired += points;
	if (clock == TIMER_REAL)
		keep_pace(timer, points > 1);
	if (__builtin_expect(timer_goes_on(timer, clock), 1) || timer->period_ns == 0)
		return clip(periods);
	/* A signal that was pending when the timer was set again comes before its point. (Kernels
	 * from 6.13 on discard such signals.) */
	uint64_t now = clock_ns(timer_clock_id(clock));
	bool had_one = timer->stretch == 1 && now >= timer->grid_ns;
	periods += timer_pass(timer, now, timer_stretch_of(timer, clock));
	timer->repeats = had_one && timer->stretch == 1;
	timer_set_on_grid(timer, now);
	return clip(periods);
}

void timer_stay_idle(struct thread_timer *timer, enum timer_clock clock, uint32_t points, bool waits)
{
	timer->idle_ns += points * timer->period_ns;
	/* Two points at least, whatever the period. */
	bool is_long = timer->idle_ns > timer->idle_max_ns + timer->period_ns;
	/* A statement that waits for its next step is not seen to start it. Its CPU timer
	 * continues; in real time it has samples again with the thread's next query, because they
	 * interrupt the host's sleeps. */
	if (clock == TIMER_CPU ? is_long && !waits : is_long || !waits) {
		timer->idle_max_ns <<= clock == TIMER_CPU;
		timer_disarm(timer);
	}
}
