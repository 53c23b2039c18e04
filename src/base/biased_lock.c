/* SPDX-License-Identifier: Apache-2.0 */
#include "base/biased_lock.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bounded_wait.h"

/* The kernel requires a registration first. If it lacks the call, there is no user. */
static bool can_bar(void)
{
	static int known; /* atomic; 0: not yet, 1, -1: no */
	int now = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!now) {
		int saved_errno = errno;

		now = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) ? -1 : 1;
		errno = saved_errno;
		__atomic_store_n(&known, now, __ATOMIC_RELAXED);
	}
	return now > 0;
}

BOUNDED_WAIT_DEFINE(for_stores, "a child without membarrier(): stores of other threads arrive", BOUND_MS(1),
                    "nothing: it takes 1 ms");

bool biased_lock_barrier(void)
{
	int saved_errno = errno;
	bool is_passed = can_bar();

	if (is_passed && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0))
		bounded_wait_pause(&for_stores,
		                   BOUND_MS(1)); /* in a forked child; no store is delayed for so long */
	errno = saved_errno;
	return is_passed;
}

/* The user works for some microseconds. It may have left by a longjmp from a signal's handler,
 * or be a thread of the parent's. */
BOUNDED_WAIT_DEFINE(for_user, "a thread that takes over what another one owned: that one leaves it", NS_PER_S,
                    "nothing, so it looks again and again; the owner takes microseconds");

void biased_lock_revoke(struct biased_lock *lock)
{
	struct bounded_wait wait;

	if (biased_lock_is_revoked(lock))
		return;
	/* Two threads may do this at the same time. */
	__atomic_store_n(&lock->user, BIASED_LOCK_SHARING, __ATOMIC_SEQ_CST);
	biased_lock_barrier();
	wait = bounded_wait_begin(&for_user);
	/* Acquire: with biased_lock_release(). */
	while (__atomic_load_n(&lock->is_inside, __ATOMIC_ACQUIRE) && bounded_wait_nap(&wait, 0))
		;
	/* Release: with the load above. */
	__atomic_store_n(&lock->user, BIASED_LOCK_SHARED, __ATOMIC_RELEASE);
}

bool biased_lock_acquire_slowly(struct biased_lock *lock, uint32_t thread)
{
	uint32_t user = 0;

	if (can_bar() && __atomic_compare_exchange_n(&lock->user, &user, thread, false, __ATOMIC_RELAXED,
	                                             __ATOMIC_RELAXED))
		return biased_lock_acquire(lock, thread);
	biased_lock_revoke(lock);
	return false;
}
