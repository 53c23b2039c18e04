/* SPDX-License-Identifier: Apache-2.0 */
#include "timers/random.h"

#include <sys/random.h>

#include "base/clock.h"

void random_seed(struct thread *thread)
{
	/* Without entropy at boot: what differs between threads and moments. */
	if (getrandom(&thread->random, sizeof(thread->random), GRND_NONBLOCK) !=
	    (ssize_t)sizeof(thread->random))
		thread->random = clock_ns(CLOCK_REALTIME) ^ clock_ns(CLOCK_MONOTONIC) << 20 ^
		                 (uint64_t)thread->id << 40;
}
