/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the ring; handler/ring_layout.h describes the memory.
 *
 * Only the reader's sleep waits. The block is private anonymous memory: a forked child
 * has a copy, in which the parent's threads will never commit what they reserved.
 */
#include "sampler/ring_reader.h"

#include <sys/mman.h>

#include "base/sys.h"
#include "handler/ring_layout.h"

/* Release: a producer that sees the tail sees the zeros, too. */
static void store_tail(struct ring *ring, uint64_t tail)
{
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

struct ring *ring_create(size_t bytes)
{
	size_t size = RING_MIN_BYTES;
	while (size < bytes && size < RING_MAX_BYTES)
		size *= 2;

	/* The ring's own fields take a page in front of the block. */
	size_t front = 4096;
	void *memory = mmap(NULL, front + size, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;

	struct ring *ring = memory;
	ring->bytes = size;
	ring->mapped = front + size;
	ring->block = (_Atomic uint64_t *)((char *)memory + front);
	return ring;
}

size_t ring_bytes(const struct ring *ring)
{
	return ring->bytes;
}

void ring_destroy(struct ring *ring)
{
	if (ring != NULL)
		munmap(ring, ring->mapped);
}

void ring_reset_in_child(struct ring *ring)
{
	/* Fresh pages of zeros: cheaper than writing them, and they free the copies of the
	 * parent's pages. */
	if (madvise((void *)ring->block, ring->bytes, MADV_DONTNEED) != 0) {
		for (size_t i = 0; i < ring->bytes / RING_WORD; i++)
			atomic_store_explicit(&ring->block[i], 0, memory_order_relaxed);
	}
	atomic_store(&ring->dropped, 0);
	atomic_store(&ring->sleep, RING_AWAKE);
	atomic_store(&ring->wake_requested, 0);
	store_tail(ring, atomic_load(&ring->head));
}

/* Acquire on both: the caller compares them with what other threads have published. */
uint64_t ring_head(const struct ring *ring)
{
	return atomic_load_explicit(&ring->head, memory_order_acquire);
}

uint64_t ring_tail(const struct ring *ring)
{
	return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

uint64_t ring_dropped(const struct ring *ring)
{
	return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}

/* --- reading ---------------------------------------------------------------------- */

/* The counterpart of ring_publish_header(); it acquires the payload. */
static uint64_t load_header(_Atomic uint64_t *header)
{
	return atomic_load_explicit(header, memory_order_seq_cst);
}

static unsigned header_kind(uint64_t header)
{
	return (unsigned)(header >> RING_KIND_SHIFT) & RING_KIND_MASK;
}

/* Frees the record at the tail. The words are zeroed one by one as atomics: any of
 * them may become a header, for which zero has a meaning. */
static void free_oldest(struct ring *ring, uint64_t header)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	size_t bytes = ring_record_bytes(header & RING_SIZE_MASK);
	_Atomic uint64_t *word = ring_header_at(ring, tail);

	for (size_t i = 0; i < bytes / RING_WORD; i++)
		atomic_store_explicit(&word[i], 0, memory_order_relaxed);
	store_tail(ring, tail + bytes);
}

void *ring_peek(struct ring *ring, unsigned *kind, size_t *size)
{
	for (;;) {
		/* Relaxed: only this thread writes it. */
		uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
		_Atomic uint64_t *word = ring_header_at(ring, tail);
		uint64_t header = load_header(word);
		if (header_kind(header) == 0) /* not committed */
			return NULL;
		if (header_kind(header) != RING_PADDING) {
			*kind = header_kind(header);
			*size = header & RING_SIZE_MASK;
			return (void *)(word + 1);
		}
		free_oldest(ring, header);
	}
}

void ring_consume(struct ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t header = load_header(ring_header_at(ring, tail));

	if (header_kind(header) != 0)
		free_oldest(ring, header);
}

/* Whether the reader must not sleep. Called after `sleep` was stored. */
static bool has_work(struct ring *ring, uint32_t sleep)
{
	if (atomic_exchange(&ring->wake_requested, 0) != 0)
		return true;
	if (sleep != RING_SLEEP_IDLE && !ring_is_half_full(ring))
		return false;
	unsigned kind;
	size_t size;
	return ring_peek(ring, &kind, &size) != NULL;
}

/* The first and the longest pause between two looks at a record that is being written.
 * Its writer is a handler and takes microseconds, unless the thread is preempted or a
 * debugger stops it. */
#define STALL_FIRST_NS 1000000ull
#define STALL_LAST_NS 32000000ull

void ring_wait(struct ring *ring, int64_t timeout_ns)
{
	bool limited = timeout_ns >= 0;
	uint64_t deadline = limited ? clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ns : UINT64_MAX;
	uint64_t pause = STALL_FIRST_NS;

	for (;;) {
		uint32_t sleep = limited ? RING_SLEEP_TIMED : RING_SLEEP_IDLE;
		atomic_store(&ring->sleep, sleep);
		if (has_work(ring, sleep))
			break;

		uint64_t now = limited ? clock_ns(CLOCK_MONOTONIC) : 0;
		if (limited && now >= deadline)
			break;
		uint64_t until = deadline;
		/* The oldest record is reserved and not committed: every commit behind it
		 * would wake the reader in vain. */
		if (limited ? ring_is_half_full(ring) : ring_used_bytes(ring) != 0) {
			now = clock_ns(CLOCK_MONOTONIC);
			if (now + pause < until)
				until = now + pause;
			if (pause < STALL_LAST_NS)
				pause *= 2;
			/* Fails when a producer has woken the reader meanwhile. */
			uint32_t expected = sleep;
			sleep = RING_SLEEP_STALLED;
			if (!atomic_compare_exchange_strong(&ring->sleep, &expected, sleep))
				continue;
		}
		struct timespec at = timespec_of_ns(until);
		sys_futex_wait((uint32_t *)&ring->sleep, sleep, until == UINT64_MAX ? NULL : &at);
	}
	atomic_store(&ring->sleep, RING_AWAKE);
}

void ring_wake(struct ring *ring)
{
	/* The request is stored first, then `sleep` is read; the reader does it the other
	 * way round. Both sequentially consistent, so that one sees the other. */
	atomic_store(&ring->wake_requested, 1);
	if (atomic_exchange(&ring->sleep, RING_AWAKE) != RING_AWAKE)
		sys_futex_wake((uint32_t *)&ring->sleep);
}
