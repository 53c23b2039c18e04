/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the host may have a pthread_cancel() pending, which ends it at its next cancellation
 * point. That must be one of the host's own: inside queryprof a wait or an access to a file would be
 * a cancellation point in a call that is not one, and the thread would leave its work half done.
 * Threads that hold a lock of the library are not cancelled (base/lock.h); this is for work without
 * one.
 */
#pragma once

#include <pthread.h>

/* The calling thread is not cancelled until cancel_release() gets what this returns. Async-signal-safe. */
static inline int cancel_hold(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_release(int before)
{
	pthread_setcancelstate(before, NULL);
}
