/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/clock.h"

#define FORK_WAIT_NS NS_PER_S
#define FORK_WAIT_BRIEFLY_NS (NS_PER_S / 10)

/* The linker names the ends of a section. Weak: a program may have no lock at all. */
extern const struct lock *const __start_queryprof_locks[] __attribute__((weak, visibility("hidden")));
extern const struct lock *const __stop_queryprof_locks[] __attribute__((weak, visibility("hidden")));

_Static_assert(LOCK_PLACES <= 64, "a bit for each place");

/* Which locks this thread has taken for its fork(). One a thread: two can fork at once. */
static __thread uint64_t taken;

const struct lock *lock_at(enum lock_place place)
{
	for (const struct lock *const *at = __start_queryprof_locks; at < __stop_queryprof_locks; at++)
		if ((*at)->place == place)
			return *at;
	return NULL;
}

/* --- cancellation ------------------------------------------------------------------------------ */

static __thread struct {
	unsigned holds; /* the locks that the thread has, and its fork() */
	int before;
} cancel;

/* A host's signal handler may come between any two of these lines, and take and release locks: it leaves
 * the state as it found it, whichever that is. */
static void cancel_hold_here(void)
{
	int before = cancel.holds ? 0 : cancel_hold();

	atomic_signal_fence(memory_order_seq_cst);
	if (!cancel.holds++)
		cancel.before = before;
}

static void cancel_release_here(void)
{
	int before = cancel.before;

	atomic_signal_fence(memory_order_seq_cst);
	if (!--cancel.holds)
		cancel_release(before);
}

/* --- taking and releasing ------------------------------------------------------------------------ */

#ifndef NDEBUG
/* The places of the locks that this thread has. */
static __thread uint64_t held;

static const struct lock *lock_of(const pthread_mutex_t *mutex)
{
	for (const struct lock *const *at = __start_queryprof_locks; at < __stop_queryprof_locks; at++)
		if ((*at)->mutex == mutex)
			return *at;
	return NULL;
}

static void check_order(const pthread_mutex_t *mutex)
{
	const struct lock *lock = lock_of(mutex);

	if (lock && held >> lock->place) {
		const struct lock *last = lock_at(63 - __builtin_clzll(held));

		fprintf(stderr, "queryprof: a thread that has %s takes %s\n", last->name, lock->name);
		abort();
	}
}

static void note_held(const pthread_mutex_t *mutex, bool is_held)
{
	const struct lock *lock = lock_of(mutex);
	uint64_t bit = lock ? 1ull << lock->place : 0;

	held = is_held ? held | bit : held & ~bit;
}
#else
static void check_order(const pthread_mutex_t *mutex)
{
	(void)mutex;
}

static void note_held(const pthread_mutex_t *mutex, bool is_held)
{
	(void)mutex;
	(void)is_held;
}
#endif

int lock_take(pthread_mutex_t *mutex)
{
	check_order(mutex);
	return lock_took(mutex, (pthread_mutex_lock)(mutex));
}

int lock_took(pthread_mutex_t *mutex, int result)
{
	if (result)
		return result;
	cancel_hold_here();
	note_held(mutex, true);
	return 0;
}

int lock_release(pthread_mutex_t *mutex)
{
	int result;

	note_held(mutex, false);
	result = (pthread_mutex_unlock)(mutex);
	cancel_release_here();
	return result;
}

/* --- fork ------------------------------------------------------------------------------------------ */

static bool is_taken(const struct lock *lock)
{
	return taken >> lock->place & 1;
}

/* In turns of trylock(): ThreadSanitizer does not know pthread_mutex_clocklock(), and the other
 * timed lock goes by a clock that may be set: it gave up at once then, and calls were not seen. */
static bool take_until(pthread_mutex_t *mutex, uint64_t deadline_ns)
{
	const struct timespec pause = timespec_of_ns(100000);

	while (pthread_mutex_trylock(mutex) != 0) {
		if (clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

bool lock_take_within(pthread_mutex_t *mutex, uint64_t ns)
{
	const uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + ns;
	bool has_it;

	cancel_hold_here();
	has_it = take_until(mutex, deadline_ns);
	cancel_release_here();
	return has_it;
}

void locks_before_fork(void)
{
	const uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + FORK_WAIT_NS;

	cancel_hold_here();
	taken = 0;
	for (int place = 0; place < LOCK_PLACES; place++) {
		const struct lock *lock = lock_at(place);

		if (!lock)
			continue;
		if (lock->group)
			lock->group->before_fork();
		else if ((lock->at_fork == LOCK_WAITED && take_until(lock->mutex, deadline_ns)) ||
		         (lock->at_fork == LOCK_BRIEFLY &&
		          take_until(lock->mutex, clock_ns(CLOCK_MONOTONIC) + FORK_WAIT_BRIEFLY_NS)))
			taken |= 1ull << place;
	}
}

void locks_after_fork_in_parent(void)
{
	for (int place = LOCK_PLACES; place-- > 0;) {
		const struct lock *lock = lock_at(place);

		if (lock && lock->group)
			lock->group->after_fork_in_parent();
		else if (lock && is_taken(lock))
			pthread_mutex_unlock(lock->mutex);
	}
	taken = 0;
	cancel_release_here();
}

/* Makes the lock new; whether another thread held it. */
static bool renew(const struct lock *lock)
{
	bool is_held_here = is_taken(lock) || pthread_mutex_trylock(lock->mutex) == 0;

	if (is_held_here)
		pthread_mutex_unlock(lock->mutex);
	pthread_mutex_init(lock->mutex, NULL);
	return !is_held_here;
}

void locks_after_fork_in_child(void)
{
	uint64_t lost = 0;

	for (int place = 0; place < LOCK_PLACES; place++) {
		const struct lock *lock = lock_at(place);

		if (lock && !lock->group && lock->at_fork != LOCK_GROUPED && renew(lock))
			lost |= 1ull << place;
	}
	taken = 0;
	/* From the innermost outwards: what a part needs is usable before it. */
	for (int place = LOCK_PLACES; place-- > 0;) {
		const struct lock *lock = lock_at(place);

		if (lock && lock->group)
			lock->group->after_fork_in_child();
		else if (lock && lost >> place & 1 && lock->lost)
			lock->lost();
		if (lock && lock->in_child)
			lock->in_child();
	}
	cancel_release_here();
}
