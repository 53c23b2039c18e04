/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/shared_timer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/task_file.h"
#include "handler/timer.h"
#include "sampler/ring_reader.h"
#include "sampler/slots.h"
#include "sampler/state.h"
#include "sampler/timers.h"

#define VISIT_NS 10000000ull
#define COUNT_NS NS_PER_S /* the threads are counted anew after so long */

#define WAIT_NS NS_PER_S /* the longest time that a signal is waited for */

/* From a thread's turn to the handler of a signal that waited for it, of CPU time, with cold caches: 60 us
 * have been seen. */
#define TURN_NS 100000

/* On a CPU clock each tick of the thread fires. */
#define TICK_INTERVAL_NS 1000

#define NO_TIMER (-1)

#define MANY_TIMERS 16

/* A timer that was made for a visit. Its signal may come long after the visit, when its thread gets a
 * processor; without the timer it would not come at all. */
static struct visitor {
	int id;            /* atomic; the kernel's number, NO_TIMER: none */
	int signal;        /* atomic */
	struct thread *of; /* the pacer's, as the rest */
	enum timer_clock clock;
	uint32_t owner; /* the thread of the slot */
	uint64_t made_ns;
	uint64_t
		cpu_ns; /* of a CPU clock: where the visit began on it, and when it is over, where it ended */
	bool is_over;
} visitors[SHARED_TIMER_PLACES] = { [0 ... SHARED_TIMER_PLACES - 1] = { .id = NO_TIMER } };

static bool is_open, lacks_places; /* atomic */
static bool opening, is_arming;    /* atomic */
static uint32_t members_seen;      /* atomic */
static uint32_t joined;            /* atomic: how often a timer came that was no member */

/* The pacer's; at first of who opens. */
static int places[SHARED_TIMER_PLACES]; /* the numbers of timers that do nothing */
static int kept;                        /* how many there are */
static uint32_t cursor;                 /* the next timer to look at: slot × TIMER_CLOCKS + clock */
static uint32_t members, joined_seen;
static uint64_t counted_ns, called_ns, visited_ns, random_state;
static double step_ns = VISIT_NS; /* from one call to the next, the mean of some */
#define STEPS 32

static int create(clockid_t clock, struct sigevent *event)
{
	int id;

	if (syscall(SYS_timer_create, clock, event, &id) != 0)
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
static void keep_places(void)
{
	struct sigevent event;

	/* Acquire: the pacer goes on with the places of who opened. */
	(void)__atomic_load_n(&is_open, __ATOMIC_ACQUIRE);
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_NONE;
	while (kept < SHARED_TIMER_PLACES && (places[kept] = create(CLOCK_MONOTONIC, &event)) != NO_TIMER)
		kept++;
	__atomic_store_n(&lacks_places, kept < SHARED_TIMER_PLACES, __ATOMIC_RELAXED);
}

/* In a free place, or in one that was kept. */
static int create_somewhere(clockid_t clock, struct sigevent *event)
{
	int id = create(clock, event);

	while (id == NO_TIMER && errno == EAGAIN && kept > 0) {
		delete_timer(places[--kept]);
		id = create(clock, event);
	}
	return id;
}

void shared_timer_open(void)
{
	/* Whoever has few timers is not refused one. */
	if (__atomic_load_n(&is_open, __ATOMIC_RELAXED) || sampler_counter(SAMPLER_TIMERS) < MANY_TIMERS ||
	    __atomic_exchange_n(&opening, true, __ATOMIC_ACQUIRE))
		return;
	keep_places();
	__atomic_store_n(&is_open, kept > 0, __ATOMIC_RELEASE);
	__atomic_store_n(&opening, false, __ATOMIC_RELEASE);
}

bool shared_timer_comes_first(void)
{
	return shared_timer_members() != 0 && __atomic_load_n(&lacks_places, __ATOMIC_RELAXED);
}

/* Their threads change timers meanwhile: what is looked at is of about now, and a visit to a
 * timer that is no member any more finds that in the handler. */
TIMER_OF_OTHERS static bool is_member(const struct thread_timer *timer)
{
	return (timer->armed || timer->asks) && timer_is_shared(timer);
}

bool shared_timer_join(struct thread_timer *timer, enum timer_clock clock, uint64_t period_ns)
{
	if (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
		return false;
	bool is_new = !is_member(timer);
	timer->period_ns = period_ns;
	timer->stretch = timer_stretch_of(timer, clock);
	timer->idle_ns = timer->armed_ns = 0;
	timer->idle_max_ns = NS_PER_S;
	timer->slowed = timer->behind = timer->in_time = 0;
	timer->whole = false;
	/* A timer of the right signal without a number: the next query finds it armed. */
	__atomic_store_n(&timer->kernel, (uint64_t)sampler_signal() << 32, __ATOMIC_RELEASE);
	timer->armed = true;
	timer->asks = false;
	if (is_new)
		__atomic_fetch_add(&joined, 1, __ATOMIC_RELAXED);
	/* Until they are counted. The flusher may sleep for a while, and wakes the pacer. */
	if (shared_timer_members() == 0) {
		struct ring *ring = sampler_ring();
		__atomic_store_n(&members_seen, 1, __ATOMIC_RELAXED);
		if (ring != NULL)
			ring_wake(ring);
	}
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

TIMER_OF_OTHERS static void count_members(uint64_t now)
{
	uint32_t slots = slots_count(), joins = __atomic_load_n(&joined, __ATOMIC_RELAXED);

	/* Those that come are known at once, or what a visit stands for would be too little while many do. */
	members += joins - joined_seen;
	joined_seen = joins;
	if (counted_ns == 0 || now - counted_ns >= COUNT_NS) {
		counted_ns = now;
		members = 0;
		for (uint32_t i = 0; i < slots; i++)
			for (int clock = 0; clock < TIMER_CLOCKS; clock++)
				members += is_member(&slots_get(i)->timers[clock]);
	}
	__atomic_store_n(&members_seen, members, __ATOMIC_RELAXED);
}

static void delete_visitor(struct visitor *visitor)
{
	int id = __atomic_exchange_n(&visitor->id, NO_TIMER, __ATOMIC_SEQ_CST);

	if (id != NO_TIMER)
		delete_timer(id);
}

/* Not so a thread that waits: its signals were handled before it began to. */
static bool wants_processor(uint32_t id)
{
	char text[256];

	task_file_read(id, "stat", text, sizeof(text));
	const char *end = strrchr(text, ')'); /* of the name */
	return end != NULL && strncmp(end, ") R", 3) == 0;
}

/* Whether no signal is on its way any more. A visit ends with the first look at it. */
static bool is_done_on_cpu(struct visitor *visitor)
{
	struct timespec now;

	if (clock_gettime(clock_of_thread(visitor->owner), &now) != 0)
		return true;
	uint64_t cpu_ns = ns_of_timespec(now);
	if (visitor->is_over)
		return cpu_ns > visitor->cpu_ns + TURN_NS;
	visitor->is_over = true;
	/* Before the thread is looked at: what it runs from here on is not of the visit. */
	__atomic_store_n(&visitor->of->timers[TIMER_CPU].lent_until_ns, cpu_ns + TURN_NS, __ATOMIC_RELAXED);
	if (cpu_ns == visitor->cpu_ns)
		return true;
	visitor->cpu_ns = cpu_ns;
	return !wants_processor(visitor->owner);
}

static bool is_due(struct visitor *visitor)
{
	if (__atomic_load_n(&visitor->of->owner, __ATOMIC_RELAXED) != visitor->owner)
		return true;
	return visitor->clock == TIMER_CPU
	               ? is_done_on_cpu(visitor)
	               : __atomic_load_n(&visitor->of->timers[TIMER_REAL].lent_ns, __ATOMIC_ACQUIRE) == 0;
}

static void delete_due(bool all)
{
	for (int i = 0; i < SHARED_TIMER_PLACES; i++)
		if (visitors[i].id != NO_TIMER && (all || is_due(&visitors[i])))
			delete_visitor(&visitors[i]);
}

/* NULL: all wait for their signals, and not yet too long. */
static struct visitor *find_free(uint64_t now)
{
	for (int i = 0; i < SHARED_TIMER_PLACES; i++) {
		if (visitors[i].id != NO_TIMER && now - visitors[i].made_ns > WAIT_NS)
			delete_visitor(&visitors[i]);
		if (visitors[i].id == NO_TIMER)
			return &visitors[i];
	}
	return NULL;
}

static bool make(struct visitor *visitor, struct thread *slot, enum timer_clock clock)
{
	struct sigevent event;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = sampler_signal();
	event.sigev_value.sival_ptr = &slot->timers[clock];
	visitor->made_ns = clock_ns(CLOCK_MONOTONIC);
	visitor->of = slot;
	visitor->clock = clock;
	visitor->owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
	event._sigev_un._tid = (pid_t)visitor->owner;
	if (visitor->owner == 0)
		return false;
	int id = create_somewhere(clock == TIMER_CPU ? clock_of_thread(visitor->owner) : CLOCK_MONOTONIC,
	                          &event);
	if (id == NO_TIMER) {
		/* The thread has ended, or another process was quicker. */
		counter_add(SAMPLER_TIMERS_FAILED, 1);
		return false;
	}
	__atomic_store_n(&visitor->signal, event.sigev_signo, __ATOMIC_RELAXED);
	__atomic_store_n(&visitor->id, id, __ATOMIC_SEQ_CST);
	return true;
}

/* The timer of the last visit to the thread's CPU clock, whose signal is still on its way. */
static struct visitor *find_stayed(const struct thread *slot)
{
	for (int i = 0; i < SHARED_TIMER_PLACES; i++)
		if (visitors[i].id != NO_TIMER && visitors[i].clock == TIMER_CPU && visitors[i].of == slot &&
		    visitors[i].owner == __atomic_load_n(&slot->owner, __ATOMIC_RELAXED))
			return &visitors[i];
	return NULL;
}

/* `took`: the length of the visit before. They are all alike, so it stands for this one, which
 * is not known yet. `missed`: the part of it without a visitor; as many ticks of this one stand for those of
 * that time as it is as long as a mean one. */
TIMER_OF_OTHERS static bool begin(struct visitor *visitor, struct thread *slot, enum timer_clock clock,
                                  uint64_t took, uint64_t missed)
{
	struct thread_timer *timer = &slot->timers[clock];
	struct visitor *stayed = clock == TIMER_CPU ? find_stayed(slot) : NULL;

	if (stayed != NULL)
		visitor = stayed;
	else if (!make(visitor, slot, clock))
		return false;
	if (visitor->signal != sampler_signal()) /* it has moved */
		return false;
	if (clock == TIMER_CPU) {
		visitor->cpu_ns = clock_ns(clock_of_thread(visitor->owner));
		visitor->is_over = false;
		__atomic_store_n(&timer->lent_ns,
		                 (uint64_t)((double)timer_tick_ns * members * (1 + (double)missed / step_ns)),
		                 __ATOMIC_RELAXED);
		__atomic_store_n(&timer->lent_until_ns, UINT64_MAX, __ATOMIC_RELEASE);
		if (stayed == NULL)
			sys_timer_settime(visitor->id, 0, 1, TICK_INTERVAL_NS);
	} else {
		__atomic_fetch_add(&timer->lent_ns, took * members, __ATOMIC_RELEASE);
		sys_timer_settime(visitor->id, 0, 1 + next_random() % took, 0);
	}
	return true;
}

/* The next member behind the one before, NULL: there is none. */
TIMER_OF_OTHERS static struct thread *find_next(enum timer_clock *clock)
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

TIMER_OF_OTHERS uint64_t shared_timer_visit(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), took = visited_ns != 0 ? now - visited_ns : VISIT_NS;
	uint64_t step = visited_ns != 0 ? now - called_ns : VISIT_NS;
	enum timer_clock clock = TIMER_CPU;
	struct visitor *visitor;
	struct thread *slot;

	if (!__atomic_load_n(&is_open, __ATOMIC_RELAXED))
		return 0;
	if (random_state == 0)
		random_state = now | 1;
	count_members(now);
	step_ns += ((double)step - step_ns) / STEPS;
	called_ns = now;
	delete_due(members == 0);
	keep_places();
	/* Without one a later visit stands for this time, too. */
	visitor = find_free(now);
	if (visitor == NULL)
		return VISIT_NS;
	slot = members != 0 ? find_next(&clock) : NULL;
	if (slot == NULL) {
		visited_ns = counted_ns = 0;
		return 0;
	}
	__atomic_store_n(&is_arming, true, __ATOMIC_SEQ_CST);
	/* The same where the kernel refuses it. */
	if (begin(visitor, slot, clock, took, took - step) || visited_ns == 0)
		visited_ns = now;
	__atomic_store_n(&is_arming, false, __ATOMIC_RELEASE);
	/* It asks for a timer of its own again with its next query. */
	if (clock_ns(CLOCK_MONOTONIC_COARSE) > slot->retry_ns) {
		slot->timers[clock].asks = true;
		slot->timers[clock].armed = false;
	}
	return VISIT_NS / 2 + next_random() % VISIT_NS;
}

void shared_timer_silence(int number)
{
	const struct timespec pause = timespec_of_ns(20000);
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + NS_PER_S;

	while (__atomic_load_n(&is_arming, __ATOMIC_SEQ_CST) && clock_ns(CLOCK_MONOTONIC) < deadline)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	for (int i = 0; i < SHARED_TIMER_PLACES; i++) {
		int id = __atomic_load_n(&visitors[i].id, __ATOMIC_SEQ_CST);
		if (id != NO_TIMER && __atomic_load_n(&visitors[i].signal, __ATOMIC_RELAXED) == number)
			sys_timer_settime(id, 0, 0, 0);
	}
}

void shared_timer_after_fork(void)
{
	for (int i = 0; i < SHARED_TIMER_PLACES; i++)
		visitors[i].id = NO_TIMER;
	kept = 0;
	is_open = lacks_places = opening = is_arming = false;
	members_seen = members = joined = joined_seen = 0;
	counted_ns = visited_ns = 0;
}
