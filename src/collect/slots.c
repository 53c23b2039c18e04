/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of all threads' slots, and the free ones.
 *
 * Slots are in blocks that are mapped on demand and never unmapped; a slot's index and address never
 * change. So code that must look at all threads (the ledger, the handler with an unknown cookie, the
 * wait for running handlers) reads the table without a lock, at any moment, even during a fork.
 *
 * Free slots are a stack of indices, changed by compare-and-swap with a counter against reuse, so
 * neither a fork nor a thread that dies in the middle can leave a lock held. Only making a new slot
 * takes a lock.
 */
#include "collect/slots.h"

#include <pthread.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "collect/state.h"
#include "handler/timer.h"

LOCK_DEFINE(grow_lock, LOCK_THREADS);

/* The newest free slot's index + 1 in the low half; the high half counts changes. */
static uint64_t free_slots;

static uint32_t slots_made; /* atomic */

uint32_t slots_count(void)
{
	/* Acquire: the slots and their blocks. */
	return __atomic_load_n(&slots_made, __ATOMIC_ACQUIRE);
}

struct thread *slots_get(uint32_t index)
{
	char *block = thread_blocks[index / THREADS_PER_BLOCK];

	return (struct thread *)(void *)(block + index % THREADS_PER_BLOCK * thread_slot_bytes());
}

static struct thread *acquire_free(void)
{
	/* Acquire: the slot as the last owner returned it. */
	uint64_t old = __atomic_load_n(&free_slots, __ATOMIC_ACQUIRE);

	while ((uint32_t)old != 0) {
		struct thread *slot = slots_get((uint32_t)old - 1);
		uint64_t next = ((old >> 32) + 1) << 32 | __atomic_load_n(&slot->next_free, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(&free_slots, &old, next, false, __ATOMIC_ACQUIRE,
		                                __ATOMIC_ACQUIRE))
			return slot;
	}
	return NULL;
}

void slots_release(struct thread *slot)
{
	uint64_t old = __atomic_load_n(&free_slots, __ATOMIC_RELAXED);
	uint64_t next;

	do {
		__atomic_store_n(&slot->next_free, (uint32_t)old, __ATOMIC_RELAXED);
		next = ((old >> 32) + 1) << 32 | (slot->index + 1);
	} while (!__atomic_compare_exchange_n(&free_slots, &old, next, false, __ATOMIC_RELEASE,
	                                      __ATOMIC_RELAXED));
}

/* By the golden section: any few neighbours round their stretch evenly. */
#define ROUNDING_STEP (TIMER_STRETCH_PARTS * 159 / 256)

static void number_slot(struct thread *slot, uint32_t index)
{
	slot->index = index;
	for (int clock = 0; clock < TIMER_CLOCKS; clock++)
		slot->timers[clock].rounding = index * ROUNDING_STEP % TIMER_STRETCH_PARTS;
}

static bool add_block(void)
{
	uint32_t count = __atomic_load_n(&thread_block_count, __ATOMIC_RELAXED);

	if (count == THREAD_BLOCKS)
		return false;
	char *block = mmap(NULL, THREADS_PER_BLOCK * thread_slot_bytes(), PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (block == MAP_FAILED)
		return false;
	thread_blocks[count] = block;
	/* Release: a thread that sees the count also sees the block. */
	__atomic_store_n(&thread_block_count, count + 1, __ATOMIC_RELEASE);
	return true;
}

/* One at a time, so unused parts of a block stay untouched: two pages per slot. */
static struct thread *add_slot(void)
{
	uint32_t index = slots_count();

	if (index == thread_block_count * THREADS_PER_BLOCK && !add_block())
		return NULL;
	number_slot(slots_get(index), index);
	/* Release: a thread that sees the count also sees the slot and its block. */
	__atomic_store_n(&slots_made, index + 1, __ATOMIC_RELEASE);
	counter_add(SAMPLER_SLOTS, 1);
	return slots_get(index);
}

struct thread *slots_acquire(void)
{
	struct thread *slot = acquire_free();

	if (slot)
		return slot;
	lock_acquire(&grow_lock);
	slot = acquire_free(); /* another thread may have given one back */
	if (!slot)
		slot = add_slot();
	lock_release(&grow_lock);
	return slot;
}

void slots_forget_free(void)
{
	free_slots = 0;
}
