/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's timers: made when a thread first needs one, deleted with it.
 *
 * wire/timer_grid.h explains how they are armed and why. The kernel refuses a timer if the user has
 * too many pending signals (RLIMIT_SIGPENDING): this is counted, the thread has no samples, and it
 * tries again after a pause that doubles, because an attempt costs a system call.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/debug.h"
#include "base/own_process.h"
#include "collect/state.h"
#include "handler/timer.h"
#include "handler/budget.h"
#include "timers/random.h"
#include "timers/signal.h"
#include "timers/timers.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define IDLE_FIRST_NS NS_PER_S

#define RETRY_FIRST_NS NS_PER_S
#define RETRY_LAST_NS (64 * NS_PER_S)

void timers_init(void)
{
	struct timespec tick;

	/* The coarse clock is the time of the newest tick. */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0)
		timer_tick_ns = ns_of_timespec(tick);
}

static void note_refusal(struct thread *thread, int error, uint64_t now)
{
	uint64_t pause = thread->retry_pause_ns * 2;

	if (pause == 0)
		pause = RETRY_FIRST_NS;
	else if (pause > RETRY_LAST_NS)
		pause = RETRY_LAST_NS;
	thread->retry_pause_ns = pause;
	thread->retry_ns = now + pause;
	counter_add(SAMPLER_TIMERS_FAILED, 1);
	counter_set(SAMPLER_TIMER_ERRNO, (uint64_t)error);
}

/* A kernel timer in one word: its number, its signal, and a bit that is always set. */
static uint64_t word_of(int id, int signal)
{
	return 1ull << 63 | (uint64_t)signal << 32 | (uint32_t)id;
}

static bool create_timer(struct thread *thread, enum timer_clock clock)
{
	struct thread_timer *timer = &thread->timers[clock];
	uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
	struct sigevent event;
	int id;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = sampler_signal();
	event.sigev_value.sival_ptr = timer;
	event.sigev_notify_thread_id = (pid_t)thread->id;
	if (syscall(SYS_timer_create, timer_clock_id(clock), &event, &id) != 0) {
		debug_log(DEBUG_TIMERS, "thread %u: no %s timer: %s", thread->id,
		          clock == TIMER_CPU ? "CPU" : "real-time", strerror(errno));
		note_refusal(thread, errno, now);
		return false;
	}
	thread->retry_ns = thread->retry_pause_ns = 0;
	TIMER_SET(timer, period_ns, 0);
	timer->idle_max_ns = IDLE_FIRST_NS;
	/* Release: silence_timers() of signal.c on another thread finds the timer as it was made. */
	__atomic_store_n(&timer->kernel, word_of(id, event.sigev_signo), __ATOMIC_RELEASE);
	counter_add(SAMPLER_TIMERS, 1);
	debug_log(DEBUG_TIMERS, "thread %u: made its %s timer, signal %d", thread->id,
	          clock == TIMER_CPU ? "CPU" : "real-time", event.sigev_signo);
	return true;
}

/* A new period is a new grid, with a random phase. */
static void choose_grid(struct thread *thread, enum timer_clock clock, uint64_t period_ns, uint64_t now)
{
	struct thread_timer *timer = &thread->timers[clock];

	/* A signal that comes meanwhile represents nothing. */
	if (TIMER_GET(timer, armed))
		timer_disarm(timer);
	TIMER_SET(timer, period_ns, 0);
	HANDLER_BARRIER();
	timer->fired = 0;
	TIMER_SET(timer, stretch, budget_first_stretch(timer, clock, sampler_counter(SAMPLER_THREADS)));
	timer->repeats = timer->stretch == 1 || timer->whole;
	TIMER_SET(timer, slowed, 0);
	timer->behind = timer->in_time = 0;
	timer->cell_ns = timer->whole ? 0 : now;
	/* The first tick represents a tick's length before it. */
	if (clock == TIMER_CPU && !timer->repeats)
		timer->cell_ns -= timer_tick_ns;
	TIMER_SET(timer, grid_ns, timer->cell_ns + 1 + random_next(thread) % (period_ns * timer_step(timer)));
	HANDLER_BARRIER();
	TIMER_SET(timer, period_ns, period_ns);
}

/* Makes the timer fire at the next tick. Relative: an absolute time of now would have
 * passed and fire here. */
static int set_to_tick(const struct thread_timer *timer)
{
	return sys_timer_settime(timer_id(timer), 0, 1, timer_interval(timer));
}

static int set_timer(struct thread_timer *timer, enum timer_clock clock, uint64_t now)
{
	bool at_tick = clock == TIMER_CPU && !timer->whole;

	timer->idle_ns = 0;
	timer->armed_ns = at_tick ? now : 0;
	timer->waits = at_tick ? sys_voluntary_switches() : 0;
	HANDLER_BARRIER();
	TIMER_SET(timer, armed, true);
	TIMER_SET(timer, follows_ns, timer->period_ns);
	return at_tick ? set_to_tick(timer) : timer_set_on_grid(timer, now);
}

void timers_deliver_rest(const struct thread *thread)
{
	const struct thread_timer *timer = &thread->timers[TIMER_CPU];
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID), next;
	int saved_errno = errno;

	if (!timer->whole || !TIMER_GET(timer, armed) || !timer_exists(timer) || !own_process_is_here())
		return;
	/* The kernel delivers a time that has passed before the call returns, with all points since. */
	next = timer->grid_ns + timer->fired * timer_interval(timer);
	if (next <= now)
		sys_timer_settime(timer_id(timer), TIMER_ABSTIME, next, timer_interval(timer));
	errno = saved_errno;
}

bool timers_are_blocked(int number)
{
	sigset_t mask;

	return pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, number) == 1;
}

static void arm(struct thread *thread, enum timer_clock clock, uint64_t period_ns)
{
	struct thread_timer *timer = &thread->timers[clock];

	if (!timer_exists(timer) && clock_ns(CLOCK_MONOTONIC_COARSE) < thread->retry_ns)
		return;
	if (signal_is_silent() || !sampler_ring() || !own_process_is_here() || !sampler_keep_signal() ||
	    timers_are_blocked(sampler_signal()))
		return;
	if (timer_exists(timer) && timer_signal(timer) != sampler_signal())
		timers_delete(thread);
	if (timer_exists(timer) || create_timer(thread, clock)) {
		uint64_t now = clock_ns(timer_clock_id(clock));
		if (timer->period_ns != period_ns)
			choose_grid(thread, clock, period_ns, now);
		else if (!TIMER_GET(timer, armed) && clock == TIMER_REAL && !timer_goes_on(timer, clock))
			timer_pass(timer, now, timer_stretch_of(timer, clock));
		/* It no longer exists: a timer_delete() of the host took the wrong one. */
		if (set_timer(timer, clock, now) != 0) {
			note_refusal(thread, errno, clock_ns(CLOCK_MONOTONIC_COARSE));
			timers_delete(thread);
		}
	}
}

void timers_arm(struct thread *thread, enum timer_clock clock, uint64_t period_ns)
{
	bool arming = thread->arming; /* a handler of the host's may run a query in here */
	int saved_errno = errno;

	/* Before the look at which signal it is: see wait_for_arming() of signal.c. */
	__atomic_store_n(&thread->arming, true, __ATOMIC_SEQ_CST);
	arm(thread, clock, period_ns);
	__atomic_store_n(&thread->arming, arming, __ATOMIC_RELEASE);
	errno = saved_errno;
}

void timers_stop(struct thread *thread)
{
	for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
		struct thread_timer *timer = &thread->timers[clock];
		if (timer_exists(timer))
			sys_timer_settime(timer_id(timer), 0, 0, 0);
		timer_mark_disarmed(timer);
	}
}

bool sampler_acquired_signal(const siginfo_t *info)
{
	struct thread *thread = thread_current;
	int saved_errno = errno;

	if (!thread_owns_signal(info->si_code, info->si_value.sival_ptr))
		return false;
	if (thread && info->si_value.sival_ptr == &thread->response)
		__atomic_store_n(&thread->response.in_flight, 0, __ATOMIC_SEQ_CST);
	else if (thread && own_process_is_here())
		timers_stop(thread);
	errno = saved_errno;
	return true;
}

void sampler_rest(struct thread *thread)
{
	struct thread_timer *timer = &thread->timers[TIMER_REAL];
	int saved_errno = errno;

	/* A thread's CPU clock does not advance while it waits. */
	if (!TIMER_GET(timer, armed) || !own_process_is_here())
		return;
	/* The signal of one that has fired by now is delivered before this returns. */
	timer_disarm(timer);
	errno = saved_errno;
}

void timers_forget(struct thread *thread)
{
	for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
		struct thread_timer *timer = &thread->timers[clock];
		if (timer_exists(timer))
			counter_add(SAMPLER_TIMERS, -1);
		/* First, so that a late signal finds a timer that it cannot touch. Relaxed: the
		 * handler belongs to this thread, and nothing else depends on it. */
		__atomic_store_n(&timer->kernel, 0, __ATOMIC_RELAXED);
		timer_mark_disarmed(timer);
	}
}

void timers_delete(struct thread *thread)
{
	int ids[TIMER_CLOCKS], count = 0;
	int saved_errno = errno;

	for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
		if (timer_exists(&thread->timers[clock]))
			ids[count++] = timer_id(&thread->timers[clock]);
	}
	timers_forget(thread);
	HANDLER_BARRIER();
	while (count > 0 && own_process_is_here())
		syscall(SYS_timer_delete, ids[--count]);
	errno = saved_errno;
}
