/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of an allocator's blocks, by bytes.
 *
 * Each byte that a thread allocates has the same chance to be picked, one in `step`: the distances between
 * picked bytes are exponential, and a thread counts down to the next one. A block with a picked byte has a
 * sample. A block of `size` bytes has one with the probability 1 - exp(-size / step), so it represents the
 * inverse of that: `weight` blocks, and weight × size bytes. The weight is a whole number, rounded up or down
 * at random. So the sums of weights and of bytes have no bias, for blocks of any size.
 *
 * A sampled block is known until it is freed, and then has a second sample, without a stack: a thread may
 * free memory where no stack can be unwound. All of this leaves the block to its allocator.
 *
 * Neither allocates nor locks, so an allocator's callers may hold any lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/thread.h"
#include "timers/memory_blocks.h"

/* The setting query_profiler_memory_sample_bytes; 0: off. */
int64_t memory_sample_step(void);

/* The newest allocation that failed: how much it requested, 0: none failed; and the bytes of all blocks that
 * were not freed by then, as samples show them. */
struct memory_refused {
	size_t size;
	uint64_t live;
};

struct memory_countdown {
	int64_t left,
		step; /* the bytes until the next sample, and the setting when they were drawn; 0: not yet */
	struct memory_refused refused;
};
extern __thread struct memory_countdown memory_countdown
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

void memory_sample_allocated(const void *block, size_t size) __attribute__((noinline, cold));
void memory_sample_refuse(size_t size) __attribute__((noinline, cold));

/* Inlined into the allocator's replacement, whose frame and those below it are not in the stack.
 * block NULL: nothing was allocated. A thread that has not run a query yet is not sampled. */
static inline __attribute__((always_inline)) void memory_allocated(const void *block, size_t size)
{
	if (__builtin_expect((memory_countdown.left -= (int64_t)size) < 0, 0))
		memory_sample_allocated(block, size);
	if (__builtin_expect(!block, 0))
		memory_sample_refuse(size);
}

/* Enclose queryprof's own calls of the allocator's library on this thread, which have no samples. */
static inline int64_t memory_sample_pause(void)
{
	const int64_t left = memory_countdown.left;

	memory_countdown.left = INT64_MAX;
	return left;
}

static inline void memory_sample_resume(int64_t left)
{
	memory_countdown.left = left;
}

/* The block was taken from the table (memory_blocks_take()), and is being freed. */
void memory_sample_freed(const struct memory_block *taken);

/* The thread's, once. */
struct memory_refused memory_sample_refused(void);

/* It was not freed after all. */
void memory_put_back(const struct memory_block *taken);
