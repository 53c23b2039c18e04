/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/futex.h"

BOUNDED_WAIT_DEFINE(before_fork, "fork(): all locks, in their order", NS_PER_S,
                    "the threads that release them");
BOUNDED_WAIT_DEFINE(before_fork_briefly, "fork(): a lock whose holder may wait for the forking thread",
                    BOUND_MS(100), "the thread that releases it");

/* The linker names the ends of a section. Weak, because a program may have no lock at all. */
extern const struct lock *const __start_queryprof_locks[] __attribute__((weak, visibility("hidden")));
extern const struct lock *const __stop_queryprof_locks[] __attribute__((weak, visibility("hidden")));

_Static_assert(LOCK_RANKS <= 64, "a bit for each rank");

/* The locks that this thread has taken for its fork(). Per thread, because two can fork at the same time. */
static __thread uint64_t taken;

/* Of another library, which calls this one's functions. */
static const struct lock *const *joined; /* atomic */
static const struct lock *const *joined_end;

void locks_join(const struct lock *const *first, const struct lock *const *end)
{
	joined_end = end;
	__atomic_store_n(&joined, first, __ATOMIC_RELEASE);
}

/* NULL: that was the last. If two have one rank, the first counts. */
static const struct lock *const *next_in_list(const struct lock *const *at)
{
	const struct lock *const *others = __atomic_load_n(&joined, __ATOMIC_ACQUIRE);

	at = at ? at + 1 : __start_queryprof_locks;
	if (at == __stop_queryprof_locks)
		at = others;
	return at == joined_end ? NULL : at;
}

#define EACH_LOCK(at)                                                                                        \
	const struct lock *const *at = next_in_list(NULL);                                                   \
	at;                                                                                                  \
	at = next_in_list(at)

const struct lock *lock_at(enum lock_rank rank)
{
	for (EACH_LOCK(at))
		if ((*at)->rank == rank)
			return *at;
	return NULL;
}

/* --- cancellation ------------------------------------------------------------------------------ */

static __thread struct {
	unsigned holds; /* the locks that the thread has, and its fork() */
	int before;
} cancel;

/* A signal handler of the host may interrupt between any two of these lines, and take and release
 * locks: it leaves the state as it found it. */
static void cancel_hold_here(void)
{
	int before = cancel.holds ? 0 : cancel_hold();

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!cancel.holds++)
		cancel.before = before;
}

static void cancel_release_here(void)
{
	int before = cancel.before;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!--cancel.holds)
		cancel_release(before);
}

/* --- taking and releasing ------------------------------------------------------------------------ */

#ifndef NDEBUG
/* The ranks of the locks that this thread has. */
static __thread uint64_t held;

static const struct lock *lock_of(const struct mutex *mutex)
{
	for (EACH_LOCK(at))
		if ((*at)->mutex == mutex)
			return *at;
	return NULL;
}

static void check_order(const struct mutex *mutex)
{
	const struct lock *lock = lock_of(mutex);

	if (lock && held >> lock->rank) {
		const struct lock *last = lock_at(63 - __builtin_clzll(held));

		fprintf(stderr, "queryprof: a thread that has %s takes %s\n", last->name, lock->name);
		abort();
	}
}

static void note_held(const struct mutex *mutex, bool is_held)
{
	const struct lock *lock = lock_of(mutex);
	uint64_t bit = lock ? 1ull << lock->rank : 0;

	held = is_held ? held | bit : held & ~bit;
}
#else
static void check_order(const struct mutex *mutex)
{
	(void)mutex;
}

static void note_held(const struct mutex *mutex, bool is_held)
{
	(void)mutex;
	(void)is_held;
}
#endif

/* A thread may be asleep for a mutex that is CONTENDED: its holder wakes one. */
enum { FREE, TAKEN, CONTENDED };

static bool try_word(struct mutex *mutex)
{
	uint32_t word = FREE;

	/* Acquire: what the last holder wrote; give_word() releases it. */
	return __atomic_compare_exchange_n(&mutex->word, &word, TAKEN, false, __ATOMIC_ACQUIRE,
	                                   __ATOMIC_RELAXED);
}

/* NULL: waits as long as another thread has it. */
static bool acquire_word(struct mutex *mutex, struct bounded_wait *wait)
{
	if (try_word(mutex))
		return true;
	while (__atomic_exchange_n(&mutex->word, CONTENDED, __ATOMIC_ACQUIRE) != FREE) {
		if (!wait)
			futex_wait(&mutex->word, CONTENDED, FUTEX_NO_LIMIT);
		else if (!bounded_wait_remaining(wait))
			return false;
		else
			bounded_wait_futex(wait, &mutex->word, CONTENDED, BOUND_NONE);
	}
	return true;
}

static void give_word(struct mutex *mutex)
{
	if (__atomic_exchange_n(&mutex->word, FREE, __ATOMIC_RELEASE) == CONTENDED)
		futex_wake(&mutex->word, 1);
}

static void took(const struct mutex *mutex)
{
	cancel_hold_here();
	note_held(mutex, true);
}

NOT_ANALYSED void lock_acquire(struct mutex *mutex)
{
	check_order(mutex);
	acquire_word(mutex, NULL);
	took(mutex);
}

NOT_ANALYSED bool lock_try(struct mutex *mutex)
{
	bool has_it = try_word(mutex);

	if (has_it)
		took(mutex);
	return has_it;
}

NOT_ANALYSED bool lock_acquire_within(struct mutex *mutex, struct bounded_wait *wait)
{
	bool has_it = acquire_word(mutex, wait);

	if (has_it)
		took(mutex);
	return has_it;
}

NOT_ANALYSED void lock_release(struct mutex *mutex)
{
	note_held(mutex, false);
	give_word(mutex);
	cancel_release_here();
}

/* --- conditions ------------------------------------------------------------------------------------ */

NOT_ANALYSED bool condition_wait(struct condition *condition, struct mutex *mutex, struct bounded_wait *wait,
                                 uint64_t most_ns)
{
	/* Relaxed: it is changed with the mutex held. */
	uint32_t changes = __atomic_load_n(&condition->changes, __ATOMIC_RELAXED);
	bool is_woken;

	give_word(mutex);
	is_woken = bounded_wait_futex(wait, &condition->changes, changes, most_ns);
	acquire_word(mutex, NULL);
	return is_woken;
}

void condition_change(struct condition *condition)
{
	__atomic_fetch_add(&condition->changes, 1, __ATOMIC_RELAXED);
	futex_wake(&condition->changes, INT_MAX);
}

/* --- what is done once ----------------------------------------------------------------------------- */

#define DONE UINT32_MAX

static void do_it(struct once *once, void (*work)(void))
{
	int before = cancel_hold();

	work();
	cancel_release(before);
	__atomic_store_n(&once->state, DONE, __ATOMIC_RELEASE);
	futex_wake(&once->state, INT_MAX);
}

void once_do(struct once *once, void (*work)(void))
{
	uint32_t state, here;

	/* Acquire: what the work wrote. */
	while ((state = __atomic_load_n(&once->state, __ATOMIC_ACQUIRE)) != DONE) {
		here = (uint32_t)getpid();
		if (state == here)
			futex_wait(&once->state, here, FUTEX_NO_LIMIT);
		else if (__atomic_compare_exchange_n(&once->state, &state, here, false, __ATOMIC_ACQUIRE,
		                                     __ATOMIC_RELAXED))
			do_it(once, work);
	}
}

/* --- fork ------------------------------------------------------------------------------------------ */

static bool is_held(const struct lock *lock)
{
	return taken >> lock->rank & 1;
}

static bool acquire_briefly(struct mutex *mutex)
{
	struct bounded_wait wait = bounded_wait_begin(&before_fork_briefly);

	return lock_acquire_within(mutex, &wait);
}

NOT_ANALYSED void locks_before_fork(void)
{
	struct bounded_wait wait = bounded_wait_begin(&before_fork);

	cancel_hold_here();
	taken = 0;
	for (int rank = 0; rank < LOCK_RANKS; rank++) {
		const struct lock *lock = lock_at(rank);

		if (!lock)
			continue;
		if (lock->group)
			lock->group->before_fork();
		else if ((lock->at_fork == LOCK_WAITED && lock_acquire_within(lock->mutex, &wait)) ||
		         (lock->at_fork == LOCK_BRIEFLY && acquire_briefly(lock->mutex)))
			taken |= 1ull << rank;
	}
}

NOT_ANALYSED void locks_after_fork_in_parent(void)
{
	for (int rank = LOCK_RANKS; rank-- > 0;) {
		const struct lock *lock = lock_at(rank);

		if (lock && lock->group)
			lock->group->after_fork_in_parent();
		else if (lock && is_held(lock))
			lock_release(lock->mutex);
	}
	taken = 0;
	cancel_release_here();
}

/* Makes the lock new; whether another thread held it. */
static bool renew(const struct lock *lock)
{
	bool is_held_here = is_held(lock) || lock_try(lock->mutex);

	if (is_held_here)
		lock_release(lock->mutex);
	*lock->mutex = (struct mutex){ FREE };
	return !is_held_here;
}

void locks_after_fork_in_child(void)
{
	uint64_t lost = 0;

	for (int rank = 0; rank < LOCK_RANKS; rank++) {
		const struct lock *lock = lock_at(rank);

		if (lock && !lock->group && lock->at_fork != LOCK_GROUPED && renew(lock))
			lost |= 1ull << rank;
	}
	taken = 0;
	/* From the innermost outwards: what a part needs is usable before it. */
	for (int rank = LOCK_RANKS; rank-- > 0;) {
		const struct lock *lock = lock_at(rank);

		if (lock && lock->group)
			lock->group->after_fork_in_child();
		else if (lock && lost >> rank & 1 && lock->lost)
			lock->lost();
		if (lock && lock->in_child)
			lock->in_child();
	}
	cancel_release_here();
}
