/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers' signal, among those that the host uses or may use later.
 *
 * It is one of the real-time signals that the host left at their default. They are tried from the
 * upper end down, except the last four: hosts count from SIGRTMIN up, and valgrind and qemu keep the
 * last for themselves. If the host has handlers for all of them, one is shared: other signals are
 * forwarded to the previous handler. SA_ONSTACK, because hosts such as Go's have stacks on which no
 * handler may run; every other asynchronous signal is blocked while this one is handled, so that a
 * handler of the host never runs inside.
 *
 * A host that sets a handler for the signal later, or a descriptor, gets the signal: the timers are
 * silenced, their pending signals are discarded, and they are made again with another signal when
 * their threads start their next queries. Hooks (signals.c of src/hook) report it before it happens.
 * A host that bypasses them (with a bare system call) is noticed when a timer is armed and when the
 * flusher has stored something. A host that only sets the default again (some do that for all
 * signals) does not use the signal: queryprof's handler remains and acts like the default for other
 * signals, because with a timer armed and no handler the signal would end the process. A host that
 * ignores it is treated the same; exec, after which a signal with a handler is at its default, finds
 * it ignored.
 */
#include "timers/signal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/lock.h"
#include "base/own_process.h"
#include "base/sys.h"
#include "collect/slots.h"
#include "collect/state.h"
#include "handler/dispatch.h"
#include "handler/forward.h"
#include "timers/quiesce.h"

LOCK_DEFINE(lock, LOCK_SIGNAL, .at_fork = LOCK_LEFT);
static struct sigaction previous; /* what the host has set or left for the signal */
static bool host_has_set;         /* the host has set it while queryprof used it */
static bool is_ignored;           /* atomic: `previous` is SIG_IGN */
static bool is_silent;            /* atomic; signal_silence() */

/* Signals that a fault of the interrupted code raises; blocked, the kernel would
 * kill the process instead of calling the host's handler. */
static const int synchronous[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

#define KEPT_BY_OTHERS 4

/* --- which ----------------------------------------------------------------------- */

struct wish {
	bool unblocked; /* in the calling thread */
	bool unused;    /* still at its default */
};

static bool is_handled(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 ||
	       (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static bool is_default(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
}

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == dispatch_signal;
}

static bool grants(int number, const struct wish *wish, const sigset_t *blocked)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) != 0)
		return false;
	if (wish->unused && !is_default(&action))
		return false;
	return !wish->unblocked || sigismember(blocked, number) == 0;
}

static const struct wish wishes[] = { { true, true }, { false, true }, { false, false } };
enum { OF_NOBODY = 2, ANY = 3 }; /* how many of the wishes may be tried */

/* For a thread that has `blocked` blocked; not one of `avoid` (NULL: any). 0: there is none. */
static int choose(int tries, const sigset_t *blocked, const sigset_t *avoid)
{
	int signals = SIGRTMAX - SIGRTMIN + 1;

	for (int w = 0; w < tries; w++) {
		/* Down from below those of others, and these at the end. */
		for (int i = 0; i < signals; i++) {
			int number = SIGRTMAX - (i + KEPT_BY_OTHERS) % signals;
			if ((!avoid || sigismember(avoid, number) == 0) &&
			    grants(number, &wishes[w], blocked))
				return number;
		}
	}
	return 0;
}

/* --- the handler ------------------------------------------------------------------ */

static void set_previous(const struct sigaction *action)
{
	previous = *action;
	__atomic_store_n(&is_ignored, action->sa_handler == SIG_IGN, __ATOMIC_RELAXED);
	forward_set(action);
}

uint64_t signal_asynchronous(void)
{
	uint64_t set = UINT64_MAX;

	for (size_t i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		set &= ~(1ull << (synchronous[i] - 1));
	return set;
}

uint64_t signal_unblockable(void)
{
	uint64_t set = ~signal_asynchronous() | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);

	/* Signals that the C library keeps for itself, and does not let a program block. */
	for (int number = SIGSYS + 1; number < SIGRTMIN; number++)
		set |= 1ull << (number - 1);
	return set;
}

static int install_handler(int number)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	/* sigfillset() omits the C library's own: pthread_cancel()'s would end the thread inside
	 * the handler, if the host waits at a cancellation point. */
	const uint64_t mask = signal_asynchronous();
	struct sigaction before;

	action.sa_sigaction = dispatch_signal;
	memcpy(&action.sa_mask, &mask, sizeof(mask));

	/* Known before the handler can need it, and once more if it changed between. */
	if (sigaction(number, NULL, &before) != 0)
		return errno;
	if (is_ours(&before))
		return 0;
	set_previous(&before);
	if (sigaction(number, &action, &before) != 0)
		return errno;
	if (!is_ours(&before))
		set_previous(&before);
	return 0;
}

/* With all signals blocked, so that no handler of the host's that sets a signal comes
 * in between on this thread. Waits a while at most: false, nothing may be changed. */
BOUNDED_WAIT_DEFINE(for_choice, "the choice of the signal: another thread chooses", BOUND_MS(250),
                    "that thread, when it is done");

ACQUIRES_IF(true, lock) static bool acquire_lock(sigset_t *mask)
{
	struct bounded_wait wait = bounded_wait_begin(&for_choice);
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, mask);
	if (lock_acquire_within(&lock, &wait))
		return true;
	pthread_sigmask(SIG_SETMASK, mask, NULL);
	return false;
}

RELEASES(lock) static void release_lock(const sigset_t *mask)
{
	lock_release(&lock);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

int signal_start(void)
{
	sigset_t mask;
	int number, error;

	if (!acquire_lock(&mask))
		return EBUSY;
	number = sampler_signal();
	if (number == 0)
		number = choose(ANY, &mask, NULL);
	error = number == 0 ? EBUSY : install_handler(number);
	if (error == 0)
		__atomic_store_n(&sampler_signal_number, number, __ATOMIC_RELEASE);
	release_lock(&mask);
	return error;
}

/* --- giving it away ----------------------------------------------------------------- */

BOUNDED_WAIT_DEFINE(for_arming, "a signal that is given up: other threads arm their timers", NS_PER_S,
                    "nothing, so it looks every 20 us; they take microseconds");

/* Waits until no thread but this one is where timers_arm() was at the call; a second at
 * most. */
static void wait_for_arming(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_arming);
	uint32_t slots = slots_count();

	for (uint32_t i = 0; i < slots; i++) {
		struct thread *slot = slots_get(i);
		while (slot != thread_current && __atomic_load_n(&slot->arming, __ATOMIC_SEQ_CST) &&
		       bounded_wait_nap(&wait, 20000))
			;
	}
}

/* Stops, in the kernel, all timers that send this signal. */
static void silence_timers(int number)
{
	uint32_t slots = slots_count();

	for (uint32_t i = 0; i < slots; i++) {
		for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
			/* Acquire: the initialised timer. Read once: its thread may delete it
			 * right now, and make another with another signal. */
			struct thread_timer timer = { .kernel = __atomic_load_n(
							      &slots_get(i)->timers[clock].kernel,
							      __ATOMIC_ACQUIRE) };
			if (timer_exists(&timer) && timer_signal(&timer) == number)
				sys_timer_settime(timer_id(&timer), 0, 0, 0);
		}
	}
}

/* The next queries of their threads make the timers that send this signal anew. */
static void renew_timers(int number)
{
	uint32_t slots = slots_count();

	for (uint32_t i = 0; i < slots; i++) {
		for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
			struct thread_timer *timer = &slots_get(i)->timers[clock];

			if (timer_signal(timer) == number)
				TIMER_SET(timer, follows_ns, 0);
		}
	}
}

/* The timers get another signal, not one of `avoid`; afterwards none of them sends the old one.
 * False: there is none. */
REQUIRES(lock) static bool move(const sigset_t *blocked, const sigset_t *avoid)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction action;
	int old = sampler_signal(), number = choose(OF_NOBODY, blocked, avoid);

	if (number == 0 || install_handler(number) != 0)
		return false;
	__atomic_store_n(&sampler_signal_number, number, __ATOMIC_SEQ_CST);
	host_has_set = false;
	/* A thread that read the old number has armed its timer by now. */
	wait_for_arming();
	renew_timers(old);
	/* Discards, on every thread, the pending signals. A host's own handler is already set if
	 * it used the hooks. */
	if (sigaction(old, NULL, &action) == 0 && is_ours(&action))
		sigaction(old, &ignore, NULL);
	/* A handler that runs still may arm its timer. */
	sampler_quiesce();
	silence_timers(old);
	counter_add(SAMPLER_SIGNAL_MOVES, 1);
	return true;
}

bool sampler_host_sets_signal(int number, const struct sigaction *action, struct sigaction *before,
                              int *result)
{
	sigset_t mask;
	bool done = true;

	if (!own_process_is_here() || is_ours(action) || signal_is_silent() || !acquire_lock(&mask))
		return false;
	*result = 0;
	if (number != sampler_signal()) {
		done = false; /* it has moved meanwhile */
	} else {
		struct sigaction was = previous;

		if (is_handled(action) && move(&mask, NULL)) {
			*result = sigaction(number, action, NULL);
		} else {
			/* The default, or there is no other signal: queryprof's handler forwards. */
			set_previous(action);
			host_has_set = true;
		}
		if (before)
			*before = was;
	}
	release_lock(&mask);
	return done;
}

bool sampler_host_reads_action(int number, struct sigaction *action)
{
	sigset_t mask;
	bool known;

	if (!own_process_is_here() || signal_is_silent() || !acquire_lock(&mask))
		return false;
	known = number == sampler_signal() && host_has_set;
	if (known)
		*action = previous;
	release_lock(&mask);
	return known;
}

bool sampler_host_reads_signal(const sigset_t *set, sigset_t *without)
{
	sigset_t mask;
	int number;

	if (!own_process_is_here() || signal_is_silent() || !acquire_lock(&mask))
		return false;
	number = sampler_signal();
	if (sigismember(set, number) == 1) {
		struct sigaction was = previous;

		if (move(&mask, set))
			sigaction(number, &was, NULL);
	}
	release_lock(&mask);
	number = sampler_signal();
	if (sigismember(set, number) != 1)
		return false;
	*without = *set;
	sigdelset(without, number);
	return true;
}

void signal_before_exec(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	/* Relaxed: another thread may set it just now. Without the lock, which a child of vfork() does
	 * not have: its actions are its own. If exec fails sampler_keep_signal() puts the handler back. */
	if (__atomic_load_n(&is_ignored, __ATOMIC_RELAXED))
		sigaction(sampler_signal(), &ignore, NULL);
	else if (signal_is_silent())
		sigaction(sampler_signal(), &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

/* --- silence ------------------------------------------------------------------------- */

bool signal_is_silent(void)
{
	return __atomic_load_n(&is_silent, __ATOMIC_SEQ_CST);
}

BOUNDED_WAIT_DEFINE(
	for_handlers,
	"a seccomp filter: threads that were preempted at the first or last instruction of a handler",
	BOUND_MS(20), "nothing: such a thread cannot be seen");

/* The signal is ignored from then on: pending ones are discarded, and a late one starts no handler. */
void signal_silence(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t mask;
	bool is_taken;

	if (sampler_signal() == 0)
		return;
	is_taken = acquire_lock(&mask);
	/* Sequentially consistent: with `arming` of each thread. */
	__atomic_store_n(&is_silent, true, __ATOMIC_SEQ_CST);
	wait_for_arming();
	sigaction(sampler_signal(), &ignore, NULL);
	/* A handler that runs still may arm its timer. */
	sampler_quiesce();
	silence_timers(sampler_signal());
	sigaction(sampler_signal(), &ignore, NULL);
	bounded_wait_pause(&for_handlers, BOUND_MS(20));
	if (is_taken)
		release_lock(&mask);
}

void signal_speak_again(void)
{
	uint32_t slots = slots_count();

	__atomic_store_n(&is_silent, false, __ATOMIC_SEQ_CST);
	sampler_keep_signal();
	/* Their threads do not know that the timers were stopped. */
	for (uint32_t i = 0; i < slots; i++) {
		for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
			struct thread_timer *timer = &slots_get(i)->timers[clock];

			TIMER_SET(timer, follows_ns, 0);
			TIMER_SET(timer, armed, false);
		}
	}
}

bool sampler_keep_signal(void)
{
	struct sigaction action;
	sigset_t mask;
	bool kept;
	int number;

	if (signal_is_silent())
		return false;
	if (sigaction(sampler_signal(), NULL, &action) != 0) {
		counter_add(SAMPLER_TIMERS_FAILED, 1); /* the caller does without them */
		counter_set(SAMPLER_TIMER_ERRNO, (uint64_t)errno);
		return false;
	}
	if (is_ours(&action))
		return true;
	/* No wait, because the thread that holds the lock may be waiting for the host. */
	if (!lock_try(&lock))
		return false;
	sigemptyset(&mask);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	/* Another thread may have moved the timers since: after a second move nobody would own the
	 * signal of the first. */
	number = sampler_signal();
	kept = sigaction(number, NULL, &action) == 0 &&
	       (is_ours(&action) || (is_handled(&action) && move(&mask, NULL)) ||
	        install_handler(number) == 0);
	lock_release(&lock);
	return kept;
}
