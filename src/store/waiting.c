/* SPDX-License-Identifier: Apache-2.0 */
#include "store/waiting.h"

#include <errno.h>

#include "base/clock.h"
#include "base/lock.h"

#define NS_PER_MS 1000000ull
#define SLICE_MS 5

static uint64_t time_in(int ms)
{
	return clock_ns(CLOCK_MONOTONIC) + (ms < 0 ? 0 : (uint64_t)ms) * NS_PER_MS;
}

struct waiting waiting_begin(const struct store_wait *wait)
{
	return (struct waiting){ .wait = *wait, .deadline_ns = time_in(wait->timeout_ms) };
}

struct waiting waiting_begin_ms(int timeout_ms)
{
	return waiting_begin(&(struct store_wait){ .timeout_ms = timeout_ms });
}

bool waiting_is_over(const struct waiting *waiting)
{
	return time_in(0) >= waiting->deadline_ns;
}

bool waiting_goes_on(const struct waiting *waiting, pthread_cond_t *condition, pthread_mutex_t *lock)
{
	uint64_t slice_ns = time_in(SLICE_MS);
	bool is_slice = waiting->wait.give_up && slice_ns < waiting->deadline_ns;
	struct timespec until = timespec_of_ns(is_slice ? slice_ns : waiting->deadline_ns);
	int result = pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until);
	bool given_up;

	if (!is_slice)
		return result != ETIMEDOUT;
	pthread_mutex_unlock(lock);
	given_up = waiting->wait.give_up(waiting->wait.context);
	pthread_mutex_lock(lock);
	return !given_up;
}
