/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for another thread of the store: with a limit, and for as long as the caller still
 * wants it.
 */
#ifndef QUERYPROF_STORE_WAITING_H
#define QUERYPROF_STORE_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct store_wait {
	int timeout_ms;
	/* Called on the waiting thread every few ms, without a lock; true ends the wait. NULL:
	 * never. */
	bool (*give_up)(void *context);
	void *context;
};

/* A wait that has begun. */
struct waiting {
	struct store_wait wait;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};

struct waiting waiting_begin(const struct store_wait *wait);
struct waiting waiting_begin_ms(int timeout_ms);

/* Whether the deadline has passed. */
bool waiting_is_over(const struct waiting *waiting);

/* Waits for the condition, a few ms at most when there is a give_up(). `lock` is held by the
 * caller, and may be released meanwhile. False: the deadline has passed, or give_up() said
 * so. */
bool waiting_goes_on(const struct waiting *waiting, pthread_cond_t *condition, pthread_mutex_t *lock);

#endif
