/* SPDX-License-Identifier: Apache-2.0 */
#include "store/control/waiting.h"

#define SLICE_NS BOUND_MS(5)

struct waiting waiting_begin(const struct bounded_wait_kind *kind, const struct store_wait *wait)
{
	const uint64_t ns = BOUND_MS(wait->timeout_ms < 0 ? 0 : wait->timeout_ms);

	return (struct waiting){ .wait = *wait, .bound = bounded_wait_begin_within(kind, ns) };
}

struct waiting waiting_begin_ms(const struct bounded_wait_kind *kind, int timeout_ms)
{
	return waiting_begin(kind, &(struct store_wait){ .timeout_ms = timeout_ms });
}

bool waiting_is_over(const struct waiting *waiting)
{
	return bounded_wait_remaining(&waiting->bound) == 0;
}

bool waiting_goes_on(struct waiting *waiting, struct condition *condition, struct mutex *lock)
{
	bool is_slice = waiting->wait.give_up && bounded_wait_remaining(&waiting->bound) > SLICE_NS;
	bool is_woken = condition_wait(condition, lock, &waiting->bound, is_slice ? SLICE_NS : BOUND_NONE);
	bool given_up;

	if (!is_slice)
		return is_woken;
	lock_release(lock);
	given_up = waiting->wait.give_up(waiting->wait.context);
	lock_acquire(lock);
	return !given_up;
}
