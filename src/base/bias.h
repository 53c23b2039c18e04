/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object that only one thread has used so far is that thread's, and what the thread does to it between
 * bias_enter() and bias_leave() costs it no atomic operation. The first other thread makes it
 * shared, for good: that thread publishes it, has every processor pass a barrier, and waits
 * until the user is outside. So either the user sees that the thing is shared, or it is waited
 * for. In between nothing may wait for another thread.
 */
#ifndef QUERYPROF_BASE_BIAS_H
#define QUERYPROF_BASE_BIAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/way.h"

/* Zeroes: no thread has used it yet. */
struct bias {
	uint32_t user;  /* atomic: a thread's id, 0, BIAS_SHARING or BIAS_SHARED */
	bool is_inside; /* atomic: the user is between _enter() and _leave() */
};

/* No thread has these ids. */
#define BIAS_SHARING (UINT32_MAX - 1)
#define BIAS_SHARED UINT32_MAX

OFF_THE_WAY bool bias_enter_slowly(struct bias *bias, uint32_t thread);

/* False: it is shared, and its user is outside. */
static inline bool bias_enter(struct bias *bias, uint32_t thread)
{
	/* Relaxed: bias_share() has the barrier. */
	if (__builtin_expect(__atomic_load_n(&bias->user, __ATOMIC_RELAXED) == thread, 1)) {
		__atomic_store_n(&bias->is_inside, true, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&bias->user, __ATOMIC_RELAXED) == thread, 1))
			return true;
		__atomic_store_n(&bias->is_inside, false, __ATOMIC_RELAXED);
	}
	return bias_enter_slowly(bias, thread);
}

/* The same, of a thread that is the user already. False: it is not. `thread`: not 0. */
static inline bool bias_enter_again(struct bias *bias, uint32_t thread)
{
	/* As above. */
	if (__atomic_load_n(&bias->user, __ATOMIC_RELAXED) != thread)
		return false;
	__atomic_store_n(&bias->is_inside, true, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&bias->user, __ATOMIC_RELAXED) == thread, 1))
		return true;
	__atomic_store_n(&bias->is_inside, false, __ATOMIC_RELEASE);
	return false;
}

static inline void bias_leave(struct bias *bias)
{
	/* Release: the thread that waits sees what was done. */
	__atomic_store_n(&bias->is_inside, false, __ATOMIC_RELEASE);
}

/* It is shared from now on, its user outside; the caller may be the user. */
void bias_share(struct bias *bias);

static inline bool bias_is_shared(const struct bias *bias)
{
	/* Acquire: what the user did before. */
	return __atomic_load_n(&bias->user, __ATOMIC_ACQUIRE) == BIAS_SHARED;
}

/* Every thread of the process passes a full barrier. False: the kernel has no such call, and
 * everything is shared. */
bool bias_pass_barrier(void);

#endif
