/* SPDX-License-Identifier: Apache-2.0 */
#include "timers/memory_blocks.h"

#include "base/clock.h"

/* Instead of an address: a thread is filling the place. */
#define FILLING 1

uint8_t memory_bucket_counts[MEMORY_BUCKETS];
static bool is_used;   /* atomic */
static uint64_t bytes; /* atomic */

uint64_t memory_blocks_bytes(void)
{
	return __atomic_load_n(&bytes, __ATOMIC_RELAXED);
}

/* Memory that was never used costs nothing. The addresses of a bucket are one line of the cache. */
static uintptr_t addresses[MEMORY_BUCKETS][MEMORY_BUCKET_BLOCKS] __attribute__((aligned(64))); /* 0: free */
static struct {
	uint32_t size, weight;
} contents[MEMORY_BUCKETS][MEMORY_BUCKET_BLOCKS];

bool memory_blocks_add(const struct memory_block *block)
{
	const uint32_t bucket = memory_bucket_of(block->address);

	__atomic_store_n(&is_used, true, __ATOMIC_RELAXED);
	/* At most one above the number of places for each thread that is here. */
	__atomic_fetch_add(&memory_bucket_counts[bucket], 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < MEMORY_BUCKET_BLOCKS; i++) {
		uintptr_t *at = &addresses[bucket][i], expected = 0;

		/* Acquire: with the release by the thread that freed the place. */
		if (!__atomic_compare_exchange_n(at, &expected, FILLING, false, __ATOMIC_ACQUIRE,
		                                 __ATOMIC_RELAXED))
			continue;
		contents[bucket][i].size = block->size;
		contents[bucket][i].weight = block->weight;
		/* Release: the content. */
		__atomic_store_n(at, block->address, __ATOMIC_RELEASE);
		__atomic_fetch_add(&bytes, (uint64_t)block->size * block->weight, __ATOMIC_RELAXED);
		return true;
	}
	__atomic_fetch_sub(&memory_bucket_counts[bucket], 1, __ATOMIC_RELAXED);
	return false;
}

bool memory_blocks_take(const void *block, struct memory_block *taken)
{
	const uint32_t bucket = memory_bucket_of((uintptr_t)block);

	for (uint32_t i = 0; block && i < MEMORY_BUCKET_BLOCKS; i++) {
		uintptr_t *at = &addresses[bucket][i];

		if (__atomic_load_n(at, __ATOMIC_ACQUIRE) != (uintptr_t)block)
			continue;
		*taken = (struct memory_block){ .address = (uintptr_t)block,
			                        .freed_ns = clock_ns(CLOCK_REALTIME),
			                        .size = contents[bucket][i].size,
			                        .weight = contents[bucket][i].weight };
		uintptr_t expected = (uintptr_t)block;
		if (!__atomic_compare_exchange_n(at, &expected, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return false; /* it was forgotten meanwhile */
		__atomic_fetch_sub(&memory_bucket_counts[bucket], 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&bytes, (uint64_t)taken->size * taken->weight, __ATOMIC_RELAXED);
		return true;
	}
	return false;
}

/* Another thread may add or take a block meanwhile: who empties a place counts for it. */
static void forget_place(uint32_t bucket, uint32_t i)
{
	uintptr_t address = __atomic_load_n(&addresses[bucket][i], __ATOMIC_ACQUIRE);
	const uint64_t size = (uint64_t)contents[bucket][i].size * contents[bucket][i].weight;

	if (address <= FILLING || !__atomic_compare_exchange_n(&addresses[bucket][i], &address, 0, false,
	                                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return;
	__atomic_fetch_sub(&memory_bucket_counts[bucket], 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&bytes, size, __ATOMIC_RELAXED);
}

void memory_blocks_forget(void)
{
	for (uint32_t bucket = 0; bucket < MEMORY_BUCKETS && __atomic_load_n(&is_used, __ATOMIC_RELAXED);
	     bucket++) {
		if (!__atomic_load_n(&memory_bucket_counts[bucket], __ATOMIC_RELAXED))
			continue;
		for (uint32_t i = 0; i < MEMORY_BUCKET_BLOCKS; i++)
			forget_place(bucket, i);
	}
}
