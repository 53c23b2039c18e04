/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/shared_timer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/sys.h"
#include "handler/timer.h"
#include "sampler/slots.h"
#include "sampler/state.h"
#include "sampler/timers.h"

#define VISIT_NS 20000000ull
#define COUNT_NS NS_PER_S /* the threads are counted anew after so long */

/* On a CPU clock each tick of the thread fires. */
#define TICK_INTERVAL_NS 1000

#define NO_TIMER (-1)

static int place = NO_TIMER;      /* the kernel's number of the timer; atomic, the pacer's */
static int place_signal;          /* atomic */
static bool is_open, is_changing; /* atomic; is_changing: `place` is to be made again */
static bool is_arming;            /* atomic */
static uint32_t members_seen;     /* atomic */

/* The pacer's. */
static uint32_t cursor;               /* the next timer to look at: slot × TIMER_CLOCKS + clock */
static uint32_t counts[TIMER_CLOCKS]; /* members by clock */
static uint64_t counted_ns, random_state;

/* A thread's CPU clock, as <linux/posix-timers.h> numbers it. */
static clockid_t cpu_clock_of(uint32_t id)
{
	return (clockid_t)(~id << 3 | 6);
}

static int create(clockid_t clock, struct sigevent *event)
{
	int id;

	if (syscall(SYS_timer_create, clock, event, &id) != 0)
		return NO_TIMER;
	return id;
}

void shared_timer_open(void)
{
	struct sigevent event;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_NONE;
	if (__atomic_load_n(&place, __ATOMIC_RELAXED) == NO_TIMER)
		__atomic_store_n(&place, create(CLOCK_MONOTONIC, &event), __ATOMIC_RELAXED);
	__atomic_store_n(&is_open, place != NO_TIMER, __ATOMIC_RELEASE);
}

bool shared_timer_comes_first(void)
{
	return __atomic_load_n(&is_changing, __ATOMIC_RELAXED);
}

static bool is_member(const struct thread_timer *timer)
{
	return timer->armed && timer_is_shared(timer);
}

bool shared_timer_join(struct thread_timer *timer, enum timer_clock clock, uint64_t period_ns)
{
	if (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
		return false;
	timer->period_ns = period_ns;
	timer->stretch = timer_stretch_of(clock);
	timer->idle_ns = timer->armed_ns = 0;
	timer->idle_max_ns = NS_PER_S;
	timer->slowed = timer->behind = timer->in_time = 0;
	timer->whole = false;
	/* A timer of the right signal without a number: the next query finds it armed. */
	__atomic_store_n(&timer->kernel, (uint64_t)sampler_signal() << 32, __ATOMIC_RELEASE);
	timer->armed = true;
	/* Until they are counted. */
	if (shared_timer_members() == 0)
		__atomic_store_n(&members_seen, 1, __ATOMIC_RELAXED);
	return true;
}

uint32_t shared_timer_members(void)
{
	return __atomic_load_n(&members_seen, __ATOMIC_RELAXED);
}

static uint64_t next_random(void)
{
	random_state = (random_state ^ random_state << 13);
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

static void count_members(uint64_t now)
{
	uint32_t slots = slots_count();

	if (counted_ns != 0 && now - counted_ns < COUNT_NS)
		return;
	counted_ns = now;
	memset(counts, 0, sizeof(counts));
	for (uint32_t i = 0; i < slots; i++)
		for (int clock = 0; clock < TIMER_CLOCKS; clock++)
			counts[clock] += is_member(&slots_get(i)->timers[clock]);
	__atomic_store_n(&members_seen, counts[TIMER_CPU] + counts[TIMER_REAL], __ATOMIC_RELAXED);
}

static void delete_place(void)
{
	int old = __atomic_exchange_n(&place, NO_TIMER, __ATOMIC_SEQ_CST);

	if (old != NO_TIMER)
		syscall(SYS_timer_delete, old);
}

/* Makes the timer and sets it. */
static bool begin(struct thread *slot, enum timer_clock clock)
{
	struct thread_timer *timer = &slot->timers[clock];
	uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
	uint64_t period_ns = timer->period_ns, interval = period_ns * timer_stretch_of(clock);
	struct sigevent event;

	if (owner == 0 || period_ns == 0)
		return false;
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = sampler_signal();
	event.sigev_value.sival_ptr = timer;
	event._sigev_un._tid = (pid_t)owner;
	delete_place();
	int id = create(clock == TIMER_CPU ? cpu_clock_of(owner) : CLOCK_MONOTONIC, &event);
	if (id == NO_TIMER)
		return false;
	__atomic_store_n(&place_signal, event.sigev_signo, __ATOMIC_RELAXED);
	__atomic_store_n(&place, id, __ATOMIC_SEQ_CST);
	__atomic_store_n(&timer->lent_ns, (clock == TIMER_CPU ? timer_tick_ns : interval) * counts[clock],
	                 __ATOMIC_RELEASE);
	if (event.sigev_signo != sampler_signal()) /* it has moved */
		return true;
	if (clock == TIMER_CPU)
		sys_timer_settime(id, 0, 1, TICK_INTERVAL_NS);
	else
		sys_timer_settime(id, 0, 1 + next_random() % interval, interval);
	return true;
}

/* The next member behind the one before, NULL: there is none. */
static struct thread *find_next(enum timer_clock *clock)
{
	uint32_t all = slots_count() * TIMER_CLOCKS;

	for (uint32_t i = 0; i < all; i++) {
		cursor = (cursor + 1) % all;
		struct thread *slot = slots_get(cursor / TIMER_CLOCKS);
		*clock = (enum timer_clock)(cursor % TIMER_CLOCKS);
		if (is_member(&slot->timers[*clock]))
			return slot;
	}
	return NULL;
}

uint64_t shared_timer_visit(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	enum timer_clock clock;
	struct thread *slot;

	if (!__atomic_load_n(&is_open, __ATOMIC_RELAXED))
		return 0;
	if (random_state == 0)
		random_state = now | 1;
	count_members(now);
	slot = counts[TIMER_CPU] + counts[TIMER_REAL] != 0 ? find_next(&clock) : NULL;
	if (slot == NULL) {
		counted_ns = 0;
		if (place != NO_TIMER)
			sys_timer_settime(place, 0, 0, 0);
		return 0;
	}
	__atomic_store_n(&is_changing, true, __ATOMIC_RELAXED);
	__atomic_store_n(&is_arming, true, __ATOMIC_SEQ_CST);
	bool begun = begin(slot, clock);
	__atomic_store_n(&is_arming, false, __ATOMIC_RELEASE);
	__atomic_store_n(&is_changing, place == NO_TIMER, __ATOMIC_RELAXED);
	/* It asks for a timer of its own again with its next query. */
	if (begun && clock_ns(CLOCK_MONOTONIC_COARSE) > slot->retry_ns)
		slot->timers[clock].armed = false;
	return VISIT_NS / 2 + next_random() % VISIT_NS;
}

void shared_timer_silence(int number)
{
	const struct timespec pause = timespec_of_ns(20000);
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + NS_PER_S;
	int id;

	while (__atomic_load_n(&is_arming, __ATOMIC_SEQ_CST) && clock_ns(CLOCK_MONOTONIC) < deadline)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	id = __atomic_load_n(&place, __ATOMIC_SEQ_CST);
	if (id != NO_TIMER && __atomic_load_n(&place_signal, __ATOMIC_RELAXED) == number)
		sys_timer_settime(id, 0, 0, 0);
}

void shared_timer_after_fork(void)
{
	place = NO_TIMER;
	is_open = is_changing = is_arming = false;
	members_seen = 0;
	counted_ns = 0;
}
