/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers: each thread has its own.
 */
#pragma once

#include <stdint.h>

#include "handler/thread.h"

void random_seed(struct thread *thread);

/* The state, one step on: what random_next() is made of. */
static inline uint64_t random_step(struct thread *thread)
{
	return thread->random += 0x9e3779b97f4a7c15ull;
}

/* The next random number of the thread. SplitMix64: one word of state, passes the usual tests, and phases
 * and the random part of keys need no more. */
static inline uint64_t random_next(struct thread *thread)
{
	uint64_t x = random_step(thread);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}
