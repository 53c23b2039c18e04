/* SPDX-License-Identifier: Apache-2.0 */
#include "timers/shared_timer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/bounded_wait.h"
#include "base/sys.h"
#include "collect/ring_reader.h"
#include "collect/slots.h"
#include "collect/state.h"
#include "handler/timer.h"
#include "handler/budget.h"
#include "timers/signal.h"
#include "timers/timers.h"

/* From one look at the threads to the next, at so many of their timers. */
#define VISIT_NS 10000000ull
#define LOOKS 1024

/* A thread whose next point may come before the next look but one gets a timer. */
#define AHEAD_NS (VISIT_NS * 3 / 2)

#define COUNT_NS NS_PER_S /* the threads are counted anew after so long */
#define VISIT_MOST_NS NS_PER_S

#define REAL_SLOTS 2

#define NO_TIMER (-1)

#define MANY_TIMERS 16

/* A timer that was made for the next point of a thread's grid. */
static struct visitor {
	int id;            /* atomic; the kernel's number, NO_TIMER: none */
	int signal;        /* atomic */
	struct thread *of; /* the pacer's, as the rest */
	enum timer_clock clock;
	uint32_t owner; /* the thread of the slot */
	uint64_t point_ns;
	int64_t left_ns;          /* until the point, on its clock */
	uint64_t seen_ns, ran_ns; /* the CPU clock, and when it was last seen to go on */
} visitors[SHARED_TIMER_SLOTS] = { [0 ... SHARED_TIMER_SLOTS - 1] = { .id = NO_TIMER } };

static bool is_open, lacks_slots; /* atomic */
static bool opening, is_arming;   /* atomic */
static uint32_t members;          /* atomic: as counted last, and those that came since */

/* Written by the pacer; before it runs, by the thread in shared_timer_open(). */
static int reserved[SHARED_TIMER_SLOTS]; /* the numbers of timers that do nothing */
static int kept;                         /* how many there are */
static uint32_t cursor;                  /* the next timer to look at: slot × TIMER_CLOCKS + clock */
static uint64_t counted_ns;

static int create(clockid_t clock, struct sigevent *event)
{
	int id;

	if (signal_is_silent() || syscall(SYS_timer_create, clock, event, &id) != 0)
		return NO_TIMER;
	counter_add(SAMPLER_TIMERS, 1);
	return id;
}

static void delete_timer(int id)
{
	syscall(SYS_timer_delete, id);
	counter_add(SAMPLER_TIMERS, -1);
}

/* As many as can be had. */
static void keep_slots(void)
{
	struct sigevent event;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_NONE;
	while (kept < SHARED_TIMER_SLOTS && (reserved[kept] = create(CLOCK_MONOTONIC, &event)) != NO_TIMER)
		kept++;
	__atomic_store_n(&lacks_slots, kept < SHARED_TIMER_SLOTS, __ATOMIC_RELAXED);
}

/* In a free slot, or in one that was kept. */
static int create_somewhere(clockid_t clock, struct sigevent *event)
{
	int id = create(clock, event);

	while (id == NO_TIMER && errno == EAGAIN && kept > 0) {
		delete_timer(reserved[--kept]);
		id = create(clock, event);
	}
	return id;
}

void shared_timer_open(void)
{
	/* A process with few timers is not refused one. */
	if (__atomic_load_n(&is_open, __ATOMIC_RELAXED) || sampler_counter(SAMPLER_TIMERS) < MANY_TIMERS ||
	    __atomic_exchange_n(&opening, true, __ATOMIC_ACQUIRE))
		return;
	keep_slots();
	__atomic_store_n(&is_open, kept > 0, __ATOMIC_RELEASE);
	__atomic_store_n(&opening, false, __ATOMIC_RELEASE);
}

bool shared_timer_comes_first(void)
{
	return shared_timer_members() != 0 && __atomic_load_n(&lacks_slots, __ATOMIC_RELAXED);
}

/* The kernel looks at CPU clocks in its ticks: of N timers each has one signal in so many ticks of its
 * clock, or of wall time, of visits. */
static uint32_t stretch_of(const struct thread_timer *timer, enum timer_clock clock, uint64_t period_ns)
{
	double interval =
		(double)shared_timer_members() * (double)(clock == TIMER_CPU ? timer_tick_ns : VISIT_NS);
	uint32_t stretch = (uint32_t)budget_round_stretch(interval / (double)period_ns);
	uint32_t least = budget_first_stretch(timer, clock, sampler_counter(SAMPLER_THREADS));

	return stretch > least ? stretch : least;
}

bool shared_timer_prepare(struct thread_timer *timer, enum timer_clock clock, uint64_t period_ns)
{
	if (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
		return false;
	if (!timer_is_shared(timer))
		TIMER_SET(timer, period_ns, 0); /* no grid yet */
	timer->whole = false;
	timer->armed_ns = 0;
	timer->idle_max_ns = NS_PER_S;
	TIMER_SET(timer, slowed, 0);
	timer->behind = timer->in_time = 0;
	TIMER_SET(timer, shared_stretch, stretch_of(timer, clock, period_ns));
	__atomic_store_n(&timer->look_ns, 0, __ATOMIC_RELAXED);
	/* A timer of the right signal without a number: the next query finds it armed. */
	__atomic_store_n(&timer->kernel, (uint64_t)sampler_signal() << 32, __ATOMIC_RELEASE);
	return true;
}

void shared_timer_join(void)
{
	struct ring *ring = sampler_ring();

	/* Release: the timer is armed. The flusher may sleep for a while, and wakes the pacer. */
	if (__atomic_fetch_add(&members, 1, __ATOMIC_RELEASE) == 0 && ring != NULL)
		ring_wake(ring);
}

uint32_t shared_timer_members(void)
{
	return __atomic_load_n(&members, __ATOMIC_RELAXED);
}

static void count_members(uint64_t now)
{
	uint32_t before = __atomic_load_n(&members, __ATOMIC_ACQUIRE), count = 0, slots = slots_count();

	if (counted_ns != 0 && now - counted_ns < COUNT_NS)
		return;
	counted_ns = now;
	for (uint32_t i = 0; i < slots; i++)
		for (int clock = 0; clock < TIMER_CLOCKS; clock++)
			count += timer_is_member(&slots_get(i)->timers[clock]);
	/* Unless others have come meanwhile. */
	__atomic_compare_exchange_n(&members, &before, count, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void delete_visitor(struct visitor *visitor)
{
	int id = __atomic_exchange_n(&visitor->id, NO_TIMER, __ATOMIC_SEQ_CST);

	if (id != NO_TIMER)
		delete_timer(id);
}

/* Threads of a busy processor wait for their turns no longer. */
static uint64_t longest_wait_ns(void)
{
	return NS_PER_S + shared_timer_members() * VISIT_NS;
}

/* Whether the thread will not take the timer's signal soon: it blocks the signal, or sleeps. A timer that is
 * taken away too early is lent again. */
static bool is_in_vain(struct visitor *visitor, uint64_t now)
{
	uint64_t clock_now = visitor->clock == TIMER_CPU ? clock_ns(clock_of_thread(visitor->owner)) : now;

	visitor->left_ns = (int64_t)(visitor->point_ns - clock_now);
	if (clock_now != visitor->seen_ns)
		visitor->ran_ns = now;
	visitor->seen_ns = clock_now;
	if (visitor->left_ns < -(int64_t)longest_wait_ns()) {
		__atomic_store_n(&visitor->of->timers[visitor->clock].look_ns, now + longest_wait_ns(),
		                 __ATOMIC_RELAXED);
		return true;
	}
	return now - visitor->ran_ns > longest_wait_ns();
}

/* Also when its signal has been handled. */
static bool is_over(struct visitor *visitor, uint64_t now)
{
	const struct thread_timer *timer = &visitor->of->timers[visitor->clock];

	return __atomic_load_n(&visitor->of->owner, __ATOMIC_RELAXED) != visitor->owner ||
	       !timer_is_member(timer) || TIMER_GET(timer, grid_ns) != visitor->point_ns ||
	       visitor->signal != sampler_signal() || is_in_vain(visitor, now);
}

static void delete_over(uint64_t now)
{
	for (int i = 0; i < SHARED_TIMER_SLOTS; i++)
		if (visitors[i].id != NO_TIMER && is_over(&visitors[i], now))
			delete_visitor(&visitors[i]);
}

/* For a point that is `left` away. Behind its point a timer stays: its signal may be on its way, or wait for
 * a tick, so a CPU clock has not the first slots. NULL: all points are nearer. */
static struct visitor *find_free(enum timer_clock clock, int64_t left)
{
	struct visitor *last = NULL;

	for (int i = clock == TIMER_CPU ? REAL_SLOTS : 0; i < SHARED_TIMER_SLOTS; i++) {
		if (visitors[i].id == NO_TIMER)
			return &visitors[i];
		if (visitors[i].left_ns > 0 && visitors[i].left_ns > left &&
		    (!last || visitors[i].left_ns > last->left_ns))
			last = &visitors[i];
	}
	if (last != NULL)
		delete_visitor(last);
	return last;
}

static bool is_visited(const struct thread *slot, enum timer_clock clock)
{
	for (int i = 0; i < SHARED_TIMER_SLOTS; i++)
		if (visitors[i].id != NO_TIMER && visitors[i].of == slot && visitors[i].clock == clock)
			return true;
	return false;
}

static bool make(struct visitor *visitor)
{
	struct sigevent event;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = sampler_signal();
	event.sigev_value.sival_ptr = &visitor->of->timers[visitor->clock];
	event._sigev_un._tid = (pid_t)visitor->owner;
	int id = create_somewhere(
		visitor->clock == TIMER_CPU ? clock_of_thread(visitor->owner) : CLOCK_MONOTONIC, &event);
	if (id == NO_TIMER) {
		/* The thread has ended, or another process was quicker. */
		counter_add(SAMPLER_TIMERS_FAILED, 1);
		return false;
	}
	__atomic_store_n(&visitor->signal, event.sigev_signo, __ATOMIC_RELAXED);
	__atomic_store_n(&visitor->id, id, __ATOMIC_SEQ_CST);
	return true;
}

/* Lends a timer for the point, which is `left` away on its clock, or has passed. On the CPU clock it is the
 * next tick's then: set to a time of now it would fire here, where the thread may wait. */
static void lend(struct visitor *visitor, int64_t left)
{
	__atomic_store_n(&is_arming, true, __ATOMIC_SEQ_CST);
	if (make(visitor) && visitor->signal == sampler_signal()) /* else: it has moved */
		sys_timer_settime(visitor->id, 0, left > 0 ? (uint64_t)left : 1, 0);
	__atomic_store_n(&is_arming, false, __ATOMIC_RELEASE);
}

static void look_at(struct thread *slot, enum timer_clock clock, uint64_t now)
{
	struct thread_timer *timer = &slot->timers[clock];
	struct visitor *visitor;
	uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
	uint64_t point_ns = TIMER_GET(timer, grid_ns), period_ns = TIMER_GET(timer, period_ns);

	if (!timer_is_member(timer) || owner == 0 || period_ns == 0 || is_visited(slot, clock) ||
	    now < __atomic_load_n(&timer->look_ns, __ATOMIC_RELAXED))
		return;
	uint64_t clock_now = clock_ns(clock == TIMER_CPU ? clock_of_thread(owner) : CLOCK_MONOTONIC);
	int64_t left = (int64_t)(point_ns - clock_now);
	if (left > (int64_t)AHEAD_NS) {
		uint64_t pause = (uint64_t)left - AHEAD_NS;
		/* No clock is faster than that of the wall. */
		__atomic_store_n(&timer->look_ns, now + (pause < VISIT_MOST_NS ? pause : VISIT_MOST_NS),
		                 __ATOMIC_RELAXED);
		timer->seen_ns = clock_now;
		return;
	}
	/* A thread that does not run is not lent what others may use. */
	if ((clock == TIMER_CPU && timer->seen_ns == clock_now) || !(visitor = find_free(clock, left)))
		return;
	timer->seen_ns = clock_now;
	TIMER_SET(timer, shared_stretch, stretch_of(timer, clock, period_ns));
	*visitor = (struct visitor){ .id = NO_TIMER,
		                     .of = slot,
		                     .clock = clock,
		                     .owner = owner,
		                     .point_ns = point_ns,
		                     .left_ns = left,
		                     .seen_ns = clock_now,
		                     .ran_ns = now };
	lend(visitor, left);
	/* It requests a timer of its own again with its next query. */
	if (clock_ns(CLOCK_MONOTONIC_COARSE) > __atomic_load_n(&slot->retry_ns, __ATOMIC_RELAXED)) {
		TIMER_SET(timer, is_due, true);
		TIMER_SET(timer, armed, false);
	}
}

uint64_t shared_timer_visit(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t all = slots_count() * TIMER_CLOCKS;

	/* Acquire: the pacer reads `reserved` as shared_timer_open() left it. */
	if (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
		return 0;
	count_members(now);
	delete_over(now);
	keep_slots();
	if (shared_timer_members() == 0) {
		counted_ns = 0;
		return 0;
	}
	for (uint32_t i = 0; i < all && i < LOOKS; i++) {
		cursor = (cursor + 1) % all;
		look_at(slots_get(cursor / TIMER_CLOCKS), (enum timer_clock)(cursor % TIMER_CLOCKS), now);
	}
	return VISIT_NS;
}

BOUNDED_WAIT_DEFINE(for_pacer, "a signal that is given up: the pacer arms a timer", NS_PER_S,
                    "nothing, so it looks every 20 us; the pacer takes microseconds");

void shared_timer_silence(int number)
{
	struct bounded_wait wait = bounded_wait_begin(&for_pacer);

	while (__atomic_load_n(&is_arming, __ATOMIC_SEQ_CST) && bounded_wait_nap(&wait, 20000))
		;
	for (int i = 0; i < SHARED_TIMER_SLOTS; i++) {
		int id = __atomic_load_n(&visitors[i].id, __ATOMIC_SEQ_CST);
		if (id != NO_TIMER && __atomic_load_n(&visitors[i].signal, __ATOMIC_RELAXED) == number)
			sys_timer_settime(id, 0, 0, 0);
	}
}

void shared_timer_after_fork(void)
{
	for (int i = 0; i < SHARED_TIMER_SLOTS; i++)
		visitors[i].id = NO_TIMER;
	kept = 0;
	is_open = lacks_slots = opening = is_arming = false;
	members = 0;
	counted_ns = 0;
}
