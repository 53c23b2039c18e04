/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampled blocks that were not freed yet: a table of fixed size, without locks.
 *
 * A block belongs to a bucket by its address. Nearly all blocks that are freed have no sample, and for most
 * of these a count of their bucket, one byte of a small array, says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct memory_block {
	uintptr_t address;
	uint64_t freed_ns; /* CLOCK_REALTIME, set by memory_blocks_take() */
	uint32_t size, weight;
};

#define MEMORY_BUCKET_BITS 13
#define MEMORY_BUCKETS (1u << MEMORY_BUCKET_BITS)
#define MEMORY_BUCKET_BLOCKS 8u

/* How many blocks a bucket has; atomic. */
extern uint8_t memory_bucket_counts[MEMORY_BUCKETS] __attribute__((visibility("hidden")));

static inline uint32_t memory_bucket_of(uintptr_t address)
{
	return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MEMORY_BUCKET_BITS));
}

/* False: the block is not in the table. Relaxed: whoever frees a block got its address from the thread that
 * allocated it, after it was added. */
static inline bool memory_blocks_may_have(const void *block)
{
	return __atomic_load_n(&memory_bucket_counts[memory_bucket_of((uintptr_t)block)], __ATOMIC_RELAXED) !=
	       0;
}

/* False: its bucket is full. */
bool memory_blocks_add(const struct memory_block *block);

/* Removes it, before it is freed, because another thread may get its memory then. False: it is not there. */
bool memory_blocks_take(const void *block, struct memory_block *taken);

/* The bytes that they represent. */
uint64_t memory_blocks_bytes(void);

/* Removes all. In a forked child, which has no samples of them, or while no allocation is sampled. */
void memory_blocks_forget(void);
