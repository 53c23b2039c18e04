/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the host's may have a pthread_cancel() pending, which ends it at its next cancellation point.
 * That must be one of the host's own: inside of queryprof a wait or an access to a file would be one in a
 * call that is none, and the thread would leave its work half done. Threads that have a lock of the
 * library are not cancelled (base/lock.h); this is for what is done without one.
 */
#ifndef QUERYPROF_BASE_CANCEL_H
#define QUERYPROF_BASE_CANCEL_H

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

#endif
