/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replacements of the host's sleeping and polling functions.
 *
 * All of them may be called in a signal handler, like the originals: they read the thread's slot and
 * clocks, and preserve the real functions' errno. A signal of the host at the same moment as
 * queryprof's ends a wait no earlier than one just before the wait. If the host passes a signal mask,
 * so as not to miss any signal, that mask also blocks queryprof's signal.
 */
#include "hook/waits.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "base/own_calls.h"
#include "collect/state.h"
#include "query/wait.h"
#include "timers/timers.h"

/* X(cause, result, name, parameters, arguments) */
#define WAITS(X)                                                                                             \
	X(WAIT_SLEEP, int, nanosleep, (const struct timespec *a, struct timespec *b), (a, b))                \
	X(WAIT_SLEEP, int, clock_nanosleep,                                                                  \
	  (clockid_t a, int b, const struct timespec *c, struct timespec *d), (a, b, c, d))                  \
	X(WAIT_SLEEP, int, usleep, (useconds_t a), (a))                                                      \
	X(WAIT_SLEEP, unsigned, sleep, (unsigned a), (a))                                                    \
	X(WAIT_POLL, int, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))                             \
	X(WAIT_POLL, int, ppoll, (struct pollfd * a, nfds_t b, const struct timespec *c, const sigset_t *d), \
	  (a, b, c, d))                                                                                      \
	X(WAIT_POLL, int, select, (int a, fd_set *b, fd_set *c, fd_set *d, struct timeval *e),               \
	  (a, b, c, d, e))                                                                                   \
	X(WAIT_POLL, int, pselect,                                                                           \
	  (int a, fd_set *b, fd_set *c, fd_set *d, const struct timespec *e, const sigset_t *f),             \
	  (a, b, c, d, e, f))                                                                                \
	X(WAIT_POLL, int, epoll_wait, (int a, struct epoll_event *b, int c, int d), (a, b, c, d))            \
	X(WAIT_POLL, int, epoll_pwait, (int a, struct epoll_event *b, int c, int d, const sigset_t *e),      \
	  (a, b, c, d, e))                                                                                   \
	X(WAIT_CONDITION, int, sem_timedwait, (sem_t * a, const struct timespec *b), (a, b))                 \
	X(WAIT_CONDITION, int, sem_clockwait, (sem_t * a, clockid_t b, const struct timespec *c), (a, b, c))

static struct {
#define POINTER(cause, result, name, parameters, arguments) result(*name) parameters;
	WAITS(POINTER)
} real;

struct wait {
	const struct thread *thread;
	uint32_t handled; /* signals of the sampler's, up to now */
};

/* False: queryprof's signals do not matter to this wait, any more. */
static bool begin(struct wait *wait)
{
	struct thread *thread = thread_current;

	if (!thread)
		return false;
	if (!thread->nesting) {
		sampler_rest(thread);
		return false;
	}
	*wait = (struct wait){ thread, thread->handler.done };
	return true;
}

/* Whether queryprof's signal ended the call that has ended with `error`. */
static bool must_go_on(struct wait *wait, int error)
{
	uint32_t handled = wait->thread->handler.done;
	bool ours = error == EINTR && handled != wait->handled;

	wait->handled = handled;
	return ours;
}

/* --- time ----------------------------------------------------------------- */

#define SECOND_NS ((long)NS_PER_S)
#define NS_PER_MS 1000000L

static bool is_valid(const struct timespec *time)
{
	return time && time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < SECOND_NS;
}

static struct timespec deadline_after(clockid_t clock, const struct timespec *time)
{
	struct timespec deadline;

	clock_gettime(clock, &deadline);
	deadline.tv_nsec += time->tv_nsec;
	/* For ever, rather than in the past. */
	if (__builtin_add_overflow(deadline.tv_sec, time->tv_sec + deadline.tv_nsec / SECOND_NS,
	                           &deadline.tv_sec))
		deadline.tv_sec = LONG_MAX;
	deadline.tv_nsec %= SECOND_NS;
	return deadline;
}

static struct timespec remaining_until(clockid_t clock, const struct timespec *deadline)
{
	struct timespec now, left;

	clock_gettime(clock, &now);
	left.tv_sec = deadline->tv_sec - now.tv_sec;
	left.tv_nsec = deadline->tv_nsec - now.tv_nsec;
	if (left.tv_nsec < 0) {
		left.tv_nsec += SECOND_NS;
		left.tv_sec--;
	}
	return left.tv_sec < 0 ? (struct timespec){ 0 } : left;
}

static struct timespec of_ms(int ms)
{
	return (struct timespec){ ms / 1000, ms % 1000 * NS_PER_MS };
}

/* Rounded up: a wait never ends before its time. */
static int to_ms(const struct timespec *time)
{
	return (int)(time->tv_sec * 1000 + (time->tv_nsec + NS_PER_MS - 1) / NS_PER_MS);
}

/* --- sleeping ------------------------------------------------------------- */

/* Sleeps to a deadline; the error as a result. */
static int sleep_on(struct wait *wait, clockid_t clock, const struct timespec *time, struct timespec *left)
{
	struct timespec deadline;
	int error;

	if (clock == CLOCK_REALTIME)
		clock = CLOCK_MONOTONIC; /* setting the clock does not change a length */
	deadline = deadline_after(clock, time);
	do
		error = real.clock_nanosleep(clock, TIMER_ABSTIME, &deadline, NULL);
	while (must_go_on(wait, error));
	if (error == EINTR && left)
		*left = remaining_until(clock, &deadline);
	return error;
}

static int as_errno(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

static int whole_nanosleep(const struct timespec *time, struct timespec *left)
{
	struct wait wait;

	if (!begin(&wait) || !is_valid(time) || own_call_is_forbidden(SYS_clock_nanosleep))
		return real.nanosleep(time, left);
	return as_errno(sleep_on(&wait, CLOCK_MONOTONIC, time, left));
}

static int whole_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                                 struct timespec *left)
{
	struct wait wait;
	int error;

	if (!begin(&wait) || !is_valid(time))
		return real.clock_nanosleep(clock, flags, time, left);
	if (!(flags & TIMER_ABSTIME))
		return sleep_on(&wait, clock, time, left);
	do
		error = real.clock_nanosleep(clock, flags, time, left);
	while (must_go_on(&wait, error));
	return error;
}

static int whole_usleep(useconds_t us)
{
	const struct timespec time = { us / 1000000, us % 1000000 * 1000L };
	struct wait wait;

	return begin(&wait) && !own_call_is_forbidden(SYS_clock_nanosleep)
	               ? as_errno(sleep_on(&wait, CLOCK_MONOTONIC, &time, NULL))
	               : real.usleep(us);
}

static unsigned whole_sleep(unsigned seconds)
{
	const struct timespec time = { seconds, 0 };
	struct timespec left = { 0 };
	struct wait wait;

	if (!begin(&wait) || own_call_is_forbidden(SYS_clock_nanosleep))
		return real.sleep(seconds);
	/* In whole seconds, as in libc: a fraction is lost. */
	return sleep_on(&wait, CLOCK_MONOTONIC, &time, &left) ? (unsigned)left.tv_sec : 0;
}

/* --- polling -------------------------------------------------------------- */

/* A wait with a time limit, of any kind. */
struct polling {
	struct wait wait;
	struct timespec deadline;
	bool is_limited;
};

/* `time` NULL: for ever. */
static bool begin_polling(struct polling *polling, const struct timespec *time)
{
	if (!begin(&polling->wait) || (time && !is_valid(time)))
		return false;
	polling->is_limited = time != NULL;
	if (time)
		polling->deadline = deadline_after(CLOCK_MONOTONIC, time);
	return true;
}

/* Whether it must continue, and then for how long. */
static bool poll_on(struct polling *polling, int result, struct timespec *left)
{
	if (result >= 0 || !must_go_on(&polling->wait, errno))
		return false;
	if (polling->is_limited)
		*left = remaining_until(CLOCK_MONOTONIC, &polling->deadline);
	return true;
}

static int whole_epoll_wait(int epoll, struct epoll_event *events, int max, int ms)
{
	const struct timespec time = of_ms(ms);
	struct polling polling;
	struct timespec left;
	int result;

	if (ms == 0 || !begin_polling(&polling, ms < 0 ? NULL : &time))
		return real.epoll_wait(epoll, events, max, ms);
	while (poll_on(&polling, result = real.epoll_wait(epoll, events, max, ms), &left))
		ms = ms < 0 ? ms : to_ms(&left);
	return result;
}

/* The kernel leaves the rest in `time`. */
static int whole_select(int count, fd_set *reading, fd_set *writing, fd_set *failing, struct timeval *time)
{
	struct wait wait;
	int result;

	if (!begin(&wait))
		return real.select(count, reading, writing, failing, time);
	do
		result = real.select(count, reading, writing, failing, time);
	while (result < 0 && must_go_on(&wait, errno));
	return result;
}

/* With a mask for the time of the wait. */
static const sigset_t *with_ours(const sigset_t *mask, sigset_t *room)
{
	*room = *mask;
	sigaddset(room, sampler_signal());
	return room;
}

/* It counts in ns, so that the rest of the time is not rounded up repeatedly. */
static int ppoll_on(struct polling *polling, struct pollfd *fds, nfds_t count, const struct timespec *time)
{
	struct timespec left;
	int result;

	while (poll_on(polling, result = real.ppoll(fds, count, time, NULL), &left))
		time = time ? &left : NULL;
	return result;
}

static int whole_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
	struct polling polling;
	sigset_t room;

	if (!begin_polling(&polling, time))
		return real.ppoll(fds, count, time, mask);
	if (mask)
		return real.ppoll(fds, count, time, with_ours(mask, &room));
	return ppoll_on(&polling, fds, count, time);
}

/* Then the host's call ends it, as it does alone. */
static bool is_poll_forbidden(void)
{
#ifdef SYS_poll
	return own_call_is_forbidden(SYS_poll);
#else
	return false;
#endif
}

static int whole_poll(struct pollfd *fds, nfds_t count, int ms)
{
	const struct timespec time = of_ms(ms), *limit = ms < 0 ? NULL : &time;
	struct polling polling;

	/* A host's seccomp filter may allow no other call. */
	if (ms == 0 || own_call_is_forbidden(SYS_ppoll) || is_poll_forbidden() ||
	    !begin_polling(&polling, limit))
		return real.poll(fds, count, ms);
	return ppoll_on(&polling, fds, count, limit);
}

static int whole_pselect(int count, fd_set *reading, fd_set *writing, fd_set *failing,
                         const struct timespec *time, const sigset_t *mask)
{
	struct polling polling;
	struct timespec left;
	sigset_t room;
	int result;

	if (!begin_polling(&polling, time))
		return real.pselect(count, reading, writing, failing, time, mask);
	if (mask)
		return real.pselect(count, reading, writing, failing, time, with_ours(mask, &room));
	while (poll_on(&polling, result = real.pselect(count, reading, writing, failing, time, NULL), &left))
		time = time ? &left : NULL;
	return result;
}

static int whole_epoll_pwait(int epoll, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
	struct wait wait;
	sigset_t room;

	if (!mask)
		return whole_epoll_wait(epoll, events, max, ms);
	if (ms != 0 && begin(&wait))
		mask = with_ours(mask, &room);
	return real.epoll_pwait(epoll, events, max, ms, mask);
}

/* --- semaphores ----------------------------------------------------------- */

/* sem_wait() is one of those that SA_RESTART resumes. */
static int whole_sem_timedwait(sem_t *semaphore, const struct timespec *deadline)
{
	struct wait wait;
	int result;

	if (!begin(&wait))
		return real.sem_timedwait(semaphore, deadline);
	do
		result = real.sem_timedwait(semaphore, deadline);
	while (result && must_go_on(&wait, errno));
	return result;
}

static int whole_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline)
{
	struct wait wait;
	int result;

	if (!begin(&wait))
		return real.sem_clockwait(semaphore, clock, deadline);
	do
		result = real.sem_clockwait(semaphore, clock, deadline);
	while (result && must_go_on(&wait, errno));
	return result;
}

/* --- what is hooked ------------------------------------------------------- */

/* Each is measured as one wait, however often queryprof's signals interrupt it. */
#define WHOLE(cause, result, name, parameters, arguments)                                                    \
	static result queryprof_##name parameters                                                            \
	{                                                                                                    \
		struct wait_call call = { .thread = wait_thread() };                                         \
		if (call.thread)                                                                             \
			wait_begin(&call, call.thread, cause);                                               \
		result value = whole_##name arguments;                                                       \
		wait_end_call(&call, -1, true);                                                              \
		return value;                                                                                \
	}
WAITS(WHOLE)

/* -------------------------------------------------------------------------- */

int waits_hooks(struct import_hook hooks[WAITS_HOOKS_MAX])
{
	int count = 0;

#define HOOK(cause, result, name, parameters, arguments)                                                     \
	hooks[count++] = import_hook_of(#name, &real.name, (void *)queryprof_##name);
	WAITS(HOOK)
	return count;
}
