/* SPDX-License-Identifier: Apache-2.0 */
#include "store/waiting.h"

#include <errno.h>
#include <stdint.h>

#include "base/sys.h"

#define NS_PER_MS 1000000ll
#define SLICE_MS 5

static struct timespec time_in(int ms)
{
	int64_t at = (int64_t)clock_ns(CLOCK_MONOTONIC) + (ms < 0 ? 0 : ms) * NS_PER_MS;

	return (struct timespec){ .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };
}

struct waiting waiting_begin(const struct store_wait *wait)
{
	return (struct waiting){ .wait = *wait, .deadline = time_in(wait->timeout_ms) };
}

struct waiting waiting_begin_ms(int timeout_ms)
{
	return waiting_begin(&(struct store_wait){ .timeout_ms = timeout_ms });
}

static bool is_before(struct timespec left, struct timespec right)
{
	return left.tv_sec < right.tv_sec || (left.tv_sec == right.tv_sec && left.tv_nsec < right.tv_nsec);
}

bool waiting_is_over(const struct waiting *waiting)
{
	return !is_before(time_in(0), waiting->deadline);
}

bool waiting_goes_on(const struct waiting *waiting, pthread_cond_t *condition, pthread_mutex_t *lock)
{
	struct timespec slice = time_in(SLICE_MS);
	bool given_up;

	if (!waiting->wait.give_up || !is_before(slice, waiting->deadline))
		return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &waiting->deadline) !=
		       ETIMEDOUT;
	pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &slice);
	pthread_mutex_unlock(lock);
	given_up = waiting->wait.give_up(waiting->wait.context);
	pthread_mutex_lock(lock);
	return !given_up;
}
