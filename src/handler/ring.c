/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer that is interrupted between reserve and commit only delays the reading of later records.
 */
#include "handler/ring.h"

#include "base/sys.h"
#include "wire/ring_layout.h"

/* Half the ring less a header: padding and record then fit an empty ring, wherever its
 * head is. */
size_t ring_max_payload(const struct ring *ring)
{
	return ring->bytes / 2 - RING_WORD;
}

void *ring_try_reserve(struct ring *ring, size_t size)
{
	if (size > ring_max_payload(ring))
		return NULL;

	size_t need = ring_record_bytes(size);
	uint64_t head, next;
	size_t padding;
	do {
		/* The tail first, so that it is never ahead of the head. */
		uint64_t tail = ring_load_tail(ring);
		head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
		size_t to_end = ring->bytes - (head & (ring->bytes - 1));
		padding = need > to_end ? to_end : 0;
		next = head + padding + need;
		if (next - tail > ring->bytes)
			return NULL;
		/* Relaxed: the compare-and-swap gives the space to one producer; the header, not
		 * the head, publishes its content. */
	} while (!__atomic_compare_exchange_n(&ring->head, &head, next, true, __ATOMIC_RELAXED,
	                                      __ATOMIC_RELAXED));

	if (padding != 0) {
		ring_publish_header(ring_header_at(ring, head),
		                    ring_committed_header(RING_PADDING, padding - RING_WORD));
		head += padding;
	}
	uint64_t *header = ring_header_at(ring, head);
	/* Relaxed: only this thread uses it, in ring_commit(). The compiler keeps it before the
	 * payload, so a process that is killed leaves no payload without a header. */
	__atomic_store_n(header, RING_RESERVED | size, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return (void *)(header + 1);
}

void ring_count_dropped(struct ring *ring, uint64_t count)
{
	__atomic_fetch_add(&ring->dropped, count, __ATOMIC_RELAXED);
}

void *ring_reserve(struct ring *ring, size_t size)
{
	void *payload = ring_try_reserve(ring, size);

	if (!payload)
		ring_count_dropped(ring, 1);
	return payload;
}

void ring_commit(struct ring *ring, void *payload, unsigned kind)
{
	uint64_t *header = (uint64_t *)payload - 1;
	size_t size = __atomic_load_n(header, __ATOMIC_RELAXED) & RING_SIZE_MASK;

	ring_publish_header(header, ring_committed_header(kind, size));

	/* Sequentially consistent, see ring_publish_header(). A wake-up that the test for half
	 * full misses comes with the next record, or with the timeout. */
	uint32_t sleep = __atomic_load_n(&ring->sleep, __ATOMIC_SEQ_CST);
	if (sleep != RING_SLEEP_IDLE && (sleep != RING_SLEEP_TIMED || !ring_is_half_full(ring)))
		return;
	/* Several producers may see the reader asleep. One wins, so that a sleep costs one system call. */
	if (__atomic_compare_exchange_n(&ring->sleep, &sleep, RING_AWAKE, false, __ATOMIC_SEQ_CST,
	                                __ATOMIC_SEQ_CST))
		futex_wake(&ring->sleep, 1);
}
