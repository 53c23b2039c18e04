/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the ring; wire/ring_layout.h describes the memory.
 *
 * Only the reader's sleep blocks. The memory of ring_create() is private, so a forked child has a
 * copy, in which the parent's threads never commit their reservations.
 */
#include "collect/ring_reader.h"

#include <sys/mman.h>

#include "base/bounded_wait.h"
#include "base/futex.h"
#include "wire/ring_layout.h"

/* Release: a producer that sees the tail also sees the zeros. */
static void store_tail(struct ring *ring, uint64_t tail)
{
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
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

struct ring *ring_init(void *memory, size_t bytes, uint64_t position)
{
	struct ring *ring = memory;

	ring->bytes = round_up(bytes);
	__atomic_store_n(&ring->head, position, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->next, position, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->taken, position, __ATOMIC_SEQ_CST);
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

	return memory == MAP_FAILED ? NULL : ring_init(memory, bytes, 0);
}

void ring_destroy(struct ring *ring)
{
	if (ring)
		munmap(ring, ring_memory_bytes(ring->bytes));
}

void ring_reset_in_child(struct ring *ring)
{
	/* Fresh pages of zeros: cheaper than writing them, and they free the copies of the
	 * parent's pages. */
	if (madvise(ring->block, ring->bytes, MADV_DONTNEED) != 0) {
		for (size_t i = 0; i < ring->bytes / RING_WORD; i++)
			__atomic_store_n(&ring->block[i], 0, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&ring->dropped, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->sleep, RING_AWAKE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->wake_requested, 0, __ATOMIC_SEQ_CST);
	ring_init(ring, ring->bytes, __atomic_load_n(&ring->head, __ATOMIC_SEQ_CST));
}

/* Acquire on both: the caller compares them with what other threads have published. */
uint64_t ring_head(const struct ring *ring)
{
	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
}

uint64_t ring_tail(const struct ring *ring)
{
	return __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

uint64_t ring_dropped(const struct ring *ring)
{
	return __atomic_load_n(&ring->dropped, __ATOMIC_RELAXED);
}

/* --- reading ---------------------------------------------------------------------- */

/* The counterpart of ring_publish_header(); it acquires the payload. */
static uint64_t load_header(uint64_t *header)
{
	return __atomic_load_n(header, __ATOMIC_SEQ_CST);
}

static unsigned header_kind(uint64_t header)
{
	return (unsigned)(header >> RING_KIND_SHIFT) & RING_KIND_MASK;
}

void *ring_peek(struct ring *ring, unsigned *kind, size_t *size)
{
	for (;;) {
		/* Relaxed: only this thread writes it. */
		uint64_t next = __atomic_load_n(&ring->next, __ATOMIC_RELAXED);
		uint64_t *word = ring_header_at(ring, next);
		/* The reader passed everything, including the padding at the end. */
		if (next - __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) == ring->bytes)
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
	uint64_t next = __atomic_load_n(&ring->next, __ATOMIC_RELAXED);
	uint64_t header = load_header(ring_header_at(ring, next));

	if (header_kind(header) != 0)
		__atomic_store_n(&ring->next, next + ring_record_bytes(header & RING_SIZE_MASK),
		                 __ATOMIC_RELAXED);
}

size_t ring_left(struct ring *ring)
{
	uint64_t at = __atomic_load_n(&ring->next, __ATOMIC_RELAXED), header;
	const uint64_t head = ring_head(ring);
	size_t left = 0;

	for (; at < head && (header = load_header(ring_header_at(ring, at)));
	     at += ring_record_bytes(header & RING_SIZE_MASK))
		left += header_kind(header) != RING_PADDING;
	return left + (at < head);
}

size_t ring_passed(const struct ring *ring)
{
	return __atomic_load_n(&ring->next, __ATOMIC_RELAXED) -
	       __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
}

/* The words are zeroed one by one as atomics: any of them may become a header, for which
 * zero has a meaning. */
void ring_release(struct ring *ring)
{
	uint64_t next = __atomic_load_n(&ring->next, __ATOMIC_RELAXED);
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);

	/* First, because half-zeroed memory must not be read again. The fence is for the compiler:
	 * the stores of a process that ends took effect in program order, and another process
	 * reads them after that. */
	__atomic_store_n(&ring->taken, next, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	for (uint64_t at = tail; at < next; at += RING_WORD)
		__atomic_store_n(ring_header_at(ring, at), 0, __ATOMIC_RELAXED);
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
	if (__atomic_exchange_n(&ring->wake_requested, 0, __ATOMIC_SEQ_CST) != 0)
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

BOUNDED_WAIT_DEFINE(for_record, "the flusher: a record", BOUND_NONE, "the first record; ring_wake()");
BOUNDED_WAIT_DEFINE(for_interval, "the flusher: the time of its next flush", BOUND_OF_CALLER,
                    "the record with which the ring is half full; ring_wake()");
BOUNDED_WAIT_DEFINE(for_first, "the flusher: a run that is open lasts longer", BOUND_OF_CALLER,
                    "the first record; ring_wake()");

/* `until_first`: the first record ends the sleep, not only a half-full ring. */
static bool wait_in(struct ring *ring, struct bounded_wait *wait, bool until_first)
{
	bool is_woken;
	uint64_t pause = STALL_FIRST_NS;

	for (;;) {
		uint32_t sleep = until_first ? RING_SLEEP_IDLE : RING_SLEEP_TIMED;
		__atomic_store_n(&ring->sleep, sleep, __ATOMIC_SEQ_CST);
		is_woken = has_work(ring, sleep);
		if (is_woken || bounded_wait_remaining(wait) == 0)
			break;

		uint64_t most = BOUND_NONE;
		/* The oldest record is reserved but not committed, so every later commit would
		 * wake the reader in vain. */
		if (until_first ? ring_used_bytes(ring) != 0 : ring_is_half_full(ring)) {
			most = pause;
			if (pause < STALL_LAST_NS)
				pause *= 2;
			/* Fails when a producer has woken the reader meanwhile. */
			uint32_t expected = sleep;
			sleep = RING_SLEEP_STALLED;
			if (!__atomic_compare_exchange_n(&ring->sleep, &expected, sleep, false,
			                                 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				continue;
		}
		bounded_wait_futex(wait, &ring->sleep, sleep, most);
	}
	__atomic_store_n(&ring->sleep, RING_AWAKE, __ATOMIC_SEQ_CST);
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

void ring_wake(struct ring *ring)
{
	/* The request is stored first, then `sleep` is read; the reader does it the other
	 * way round. Both sequentially consistent, so that one sees the other. */
	__atomic_store_n(&ring->wake_requested, 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&ring->sleep, RING_AWAKE, __ATOMIC_SEQ_CST) != RING_AWAKE)
		futex_wake(&ring->sleep, 1);
}
