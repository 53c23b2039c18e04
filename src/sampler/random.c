/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/random.h"

#include <sys/random.h>

#include "base/clock.h"

/* SplitMix64: one word of state, passes the usual tests, and phases and the random
 * part of keys need no more. */
uint64_t random_next(struct thread *thread)
{
	uint64_t x = thread->random += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

void random_seed(struct thread *thread)
{
	/* Without entropy at boot: what differs between threads and moments. */
	if (getrandom(&thread->random, sizeof(thread->random), GRND_NONBLOCK) !=
	    (ssize_t)sizeof(thread->random))
		thread->random = clock_ns(CLOCK_REALTIME) ^ clock_ns(CLOCK_MONOTONIC) << 20 ^
		                 (uint64_t)thread->id << 40;
}
