/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the ring; wire/ring_layout.h describes the memory.
 *
 * Only the reader's sleep waits. The memory of ring_create() is private: a forked child has
 * a copy, in which the parent's threads will never commit what they reserved.
 */
#include "collect/ring_reader.h"

#include <sys/mman.h>

#include "base/bounded_wait.h"
#include "base/futex.h"
#include "wire/ring_layout.h"

/* Release: a producer that sees the tail sees the zeros, too. */
static void store_tail(struct ring *ring, uint64_t tail)
{
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

static size_t round_up(size_t bytes)
{
	size_t size = RING_MIN_BYTES;

	while (size < bytes && size < RING_MAX_BYTES)
		size *= 2;
	return size;
}

size_t ring_memory_bytes(size_t bytes)
{
	return RING_FRONT + round_up(bytes);
}

struct ring *ring_place(void *memory, size_t bytes, uint64_t position)
{
	struct ring *ring = memory;

	ring->bytes = round_up(bytes);
	atomic_store(&ring->head, position);
	atomic_store(&ring->next, position);
	atomic_store(&ring->taken, position);
	store_tail(ring, position);
	return ring;
}

size_t ring_bytes(const struct ring *ring)
{
	return ring->bytes;
}

struct ring *ring_create(size_t bytes)
{
	void *memory = mmap(NULL, ring_memory_bytes(bytes), PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : ring_place(memory, bytes, 0);
}

void ring_destroy(struct ring *ring)
{
	if (ring != NULL)
		munmap(ring, ring_memory_bytes(ring->bytes));
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
	ring_place(ring, ring->bytes, atomic_load(&ring->head));
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

void *ring_peek(struct ring *ring, unsigned *kind, size_t *size)
{
	for (;;) {
		/* Relaxed: only this thread writes it. */
		uint64_t next = atomic_load_explicit(&ring->next, memory_order_relaxed);
		_Atomic uint64_t *word = ring_header_at(ring, next);
		/* All that there is was passed: what lies at its end has been read. */
		if (next - atomic_load_explicit(&ring->tail, memory_order_relaxed) == ring->bytes)
			return NULL;
		uint64_t header = load_header(word);
		if (header_kind(header) == 0) /* not committed */
			return NULL;
		if (header_kind(header) != RING_PADDING) {
			*kind = header_kind(header);
			*size = header & RING_SIZE_MASK;
			return (void *)(word + 1);
		}
		ring_pass(ring);
	}
}

void ring_pass(struct ring *ring)
{
	uint64_t next = atomic_load_explicit(&ring->next, memory_order_relaxed);
	uint64_t header = load_header(ring_header_at(ring, next));

	if (header_kind(header) != 0)
		atomic_store_explicit(&ring->next, next + ring_record_bytes(header & RING_SIZE_MASK),
		                      memory_order_relaxed);
}

size_t ring_passed(const struct ring *ring)
{
	return atomic_load_explicit(&ring->next, memory_order_relaxed) -
	       atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

/* The fences below are for the compiler: a process that ends has done its stores in the
 * order of the program, and another reads them after that. */

void ring_announce(struct ring *ring, uint64_t batch)
{
	atomic_store_explicit(&ring->announced_batch, batch, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&ring->announced, atomic_load_explicit(&ring->next, memory_order_relaxed),
	                      memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

/* The words are zeroed one by one as atomics: any of them may become a header, for which
 * zero has a meaning. */
void ring_release(struct ring *ring)
{
	uint64_t next = atomic_load_explicit(&ring->next, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	/* First: what is half zeroed must not be read again. */
	atomic_store_explicit(&ring->taken, next, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	for (uint64_t at = tail; at < next; at += RING_WORD)
		atomic_store_explicit(ring_header_at(ring, at), 0, memory_order_relaxed);
	store_tail(ring, next);
}

void ring_consume(struct ring *ring)
{
	ring_pass(ring);
	ring_release(ring);
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

WAIT_DEFINE(for_record, "the flusher: a record", WAIT_NO_LIMIT, "the first record; ring_wake()");
WAIT_DEFINE(for_interval, "the flusher: the time of its next flush", WAIT_OF_CALLER,
            "the record with which the ring is half full; ring_wake()");
WAIT_DEFINE(for_first, "the flusher: a run that is open lasts longer", WAIT_OF_CALLER,
            "the first record; ring_wake()");

/* `until_first`: the first record ends it, not only a ring that is half full. */
static bool wait_in(struct ring *ring, struct bounded_wait *wait, bool until_first)
{
	bool is_woken;
	uint64_t pause = STALL_FIRST_NS;

	for (;;) {
		uint32_t sleep = until_first ? RING_SLEEP_IDLE : RING_SLEEP_TIMED;
		atomic_store(&ring->sleep, sleep);
		is_woken = has_work(ring, sleep);
		if (is_woken || bounded_wait_left(wait) == 0)
			break;

		uint64_t most = WAIT_NO_LIMIT;
		/* The oldest record is reserved and not committed: every commit behind it
		 * would wake the reader in vain. */
		if (until_first ? ring_used_bytes(ring) != 0 : ring_is_half_full(ring)) {
			most = pause;
			if (pause < STALL_LAST_NS)
				pause *= 2;
			/* Fails when a producer has woken the reader meanwhile. */
			uint32_t expected = sleep;
			sleep = RING_SLEEP_STALLED;
			if (!atomic_compare_exchange_strong(&ring->sleep, &expected, sleep))
				continue;
		}
		bounded_wait_futex(wait, (uint32_t *)&ring->sleep, sleep, most);
	}
	atomic_store(&ring->sleep, RING_AWAKE);
	return is_woken;
}

bool ring_wait(struct ring *ring, int64_t timeout_ns)
{
	bool limited = timeout_ns >= 0;
	struct bounded_wait wait = limited ? bounded_wait_begin_within(&for_interval, (uint64_t)timeout_ns)
	                                   : bounded_wait_begin(&for_record);

	return wait_in(ring, &wait, !limited);
}

bool ring_wait_for_first(struct ring *ring, int64_t timeout_ns)
{
	struct bounded_wait wait = bounded_wait_begin_within(&for_first, (uint64_t)timeout_ns);

	return wait_in(ring, &wait, true);
}

bool ring_wait_beside(struct ring *ring, int64_t timeout_ns)
{
	bool is_read = ring_used_bytes(ring) == 0;
	/* Producers do not wake a stalled reader. */
	uint32_t sleep = is_read ? RING_SLEEP_IDLE : RING_SLEEP_STALLED;
	struct bounded_wait wait = is_read ? bounded_wait_begin(&for_record)
	                                   : bounded_wait_begin_within(&for_interval, (uint64_t)timeout_ns);

	atomic_store(&ring->sleep, sleep);
	if (atomic_exchange(&ring->wake_requested, 0) == 0 && (ring_used_bytes(ring) == 0) == is_read)
		bounded_wait_futex(&wait, (uint32_t *)&ring->sleep, sleep, WAIT_NO_LIMIT);
	atomic_store(&ring->sleep, RING_AWAKE);
	/* A request that came late is left for the next call. */
	return bounded_wait_left(&wait) != 0;
}

void ring_wake(struct ring *ring)
{
	/* The request is stored first, then `sleep` is read; the reader does it the other
	 * way round. Both sequentially consistent, so that one sees the other. */
	atomic_store(&ring->wake_requested, 1);
	if (atomic_exchange(&ring->sleep, RING_AWAKE) != RING_AWAKE)
		futex_wake((uint32_t *)&ring->sleep, 1);
}
