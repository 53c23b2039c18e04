/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object that only one thread has used so far belongs to that thread, which uses it between
 * biased_lock_acquire() and biased_lock_release() without an atomic operation. The first other thread
 * makes it shared permanently: that thread publishes it, makes every processor pass a barrier, and
 * waits until the user is outside. So either the user sees that the object is shared, or the other
 * thread waits for it. In between nothing may wait for another thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hot_path.h"

/* Zeroes: no thread has used it yet. */
struct biased_lock {
	uint32_t user;  /* atomic: a thread's id, 0, BIASED_LOCK_SHARING or BIASED_LOCK_SHARED */
	bool is_inside; /* atomic: the user is between _enter() and _leave() */
};

/* No thread has these ids. */
#define BIASED_LOCK_SHARING (UINT32_MAX - 1)
#define BIASED_LOCK_SHARED UINT32_MAX

COLD_PATH bool biased_lock_acquire_slowly(struct biased_lock *lock, uint32_t thread);

/* False: it is shared, and its user is outside. */
static inline bool biased_lock_acquire(struct biased_lock *lock, uint32_t thread)
{
	/* Relaxed: biased_lock_revoke() has the barrier. */
	if (__builtin_expect(__atomic_load_n(&lock->user, __ATOMIC_RELAXED) == thread, 1)) {
		__atomic_store_n(&lock->is_inside, true, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&lock->user, __ATOMIC_RELAXED) == thread, 1))
			return true;
		__atomic_store_n(&lock->is_inside, false, __ATOMIC_RELAXED);
	}
	return biased_lock_acquire_slowly(lock, thread);
}

/* The same for a thread that is already the user. False: it is not. `thread`: not 0. */
static inline bool biased_lock_reacquire(struct biased_lock *lock, uint32_t thread)
{
	/* As above. */
	if (__atomic_load_n(&lock->user, __ATOMIC_RELAXED) != thread)
		return false;
	__atomic_store_n(&lock->is_inside, true, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&lock->user, __ATOMIC_RELAXED) == thread, 1))
		return true;
	__atomic_store_n(&lock->is_inside, false, __ATOMIC_RELEASE);
	return false;
}

static inline void biased_lock_release(struct biased_lock *lock)
{
	/* Release: the waiting thread sees the user's work. */
	__atomic_store_n(&lock->is_inside, false, __ATOMIC_RELEASE);
}

/* It is shared from now on, its user outside; the caller may be the user. */
void biased_lock_revoke(struct biased_lock *lock);

static inline bool biased_lock_is_revoked(const struct biased_lock *lock)
{
	/* Acquire: what the user did before. */
	return __atomic_load_n(&lock->user, __ATOMIC_ACQUIRE) == BIASED_LOCK_SHARED;
}

/* Every thread of the process passes a full barrier. False: the kernel lacks the call, and
 * everything is shared. */
bool biased_lock_barrier(void);
