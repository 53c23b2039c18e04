/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for another thread of the store, up to a limit and as long as the caller does not give up.
 */
#pragma once

#include <stdbool.h>

#include "base/lock.h"

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
	struct bounded_wait bound;
};

struct waiting waiting_begin(const struct bounded_wait_kind *kind, const struct store_wait *wait);
struct waiting waiting_begin_ms(const struct bounded_wait_kind *kind, int timeout_ms);

/* Whether the limit has passed. */
bool waiting_is_over(const struct waiting *waiting);

/* Waits for the condition; if there is a give_up(), at most a few ms. May release `lock` meanwhile. False:
 * the limit has passed, or give_up() returned true. */
bool waiting_goes_on(struct waiting *waiting, struct condition *condition, struct mutex *lock) REQUIRES(lock);
