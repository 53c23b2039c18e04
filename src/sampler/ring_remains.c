/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/ring_layout.h says why a record that was not committed can be recognised. Wild writes of
 * a host that crashed may have changed anything: no header is believed that leads out of the
 * reserved room.
 *
 * No other thread has the ring: all orders are relaxed. The end of the process came before.
 */
#include "sampler/ring_remains.h"

#include "base/ring_layout.h"
#include "sampler/ring_reader.h"

#define LOAD(position) atomic_load_explicit(&(position), memory_order_relaxed)

struct ring *ring_remains_find(void *memory, size_t size)
{
	struct ring *ring = memory;

	if (size < RING_FRONT)
		return NULL;
	const size_t bytes = *(volatile size_t *)&ring->bytes; /* once: the process may run */
	if (bytes < RING_MIN_BYTES || bytes > RING_MAX_BYTES || (bytes & (bytes - 1)) != 0 ||
	    RING_FRONT + bytes != size)
		return NULL;
	uint64_t tail = LOAD(ring->tail), taken = LOAD(ring->taken), head = LOAD(ring->head);
	bool is_ordered = tail <= taken && taken <= head && head - tail <= bytes;
	bool is_aligned = ((tail | taken | head | LOAD(ring->announced)) & (RING_WORD - 1)) == 0;
	return is_ordered && is_aligned && LOAD(ring->announced) <= head ? ring : NULL;
}

bool ring_remains_empty(const struct ring *ring)
{
	return LOAD(ring->taken) == LOAD(ring->head);
}

bool ring_remains_announced(const struct ring *ring, uint64_t *batch)
{
	*batch = LOAD(ring->announced_batch);
	return LOAD(ring->announced) > LOAD(ring->taken);
}

bool ring_remains_sound(struct ring *ring)
{
	uint64_t head = LOAD(ring->head), next = LOAD(ring->next);

	if (next > head || head - next > ring->bytes || (next & (RING_WORD - 1)) != 0)
		return false;
	for (uint64_t at = next; at < head;) {
		uint64_t block_end = (at | (ring->bytes - 1)) + 1;
		/* Acquire: the payload is read after it. */
		uint64_t header = atomic_load_explicit(ring_header_at(ring, at), memory_order_acquire);
		size_t size = ring_record_bytes(header & RING_SIZE_MASK);

		if ((header >> RING_KIND_SHIFT & RING_KIND_MASK) == 0)
			return true; /* being written: it is read another time */
		if ((header & RING_RESERVED) == 0 || size > (head < block_end ? head : block_end) - at)
			return false;
		at += size;
	}
	return true;
}

static void store_header(struct ring *ring, uint64_t at, uint64_t header)
{
	atomic_store_explicit(ring_header_at(ring, at), header, memory_order_relaxed);
}

/* The next word that is not zero, or the limit: a reservation without its header ends there. */
static uint64_t find_header(struct ring *ring, uint64_t at, uint64_t limit)
{
	while (at < limit && LOAD(*ring_header_at(ring, at)) == 0)
		at += RING_WORD;
	return at;
}

size_t ring_remains_repair(struct ring *ring, bool announced_is_stored)
{
	uint64_t taken = LOAD(ring->taken), announced = LOAD(ring->announced);
	uint64_t start = announced_is_stored && announced > taken ? announced : taken;
	uint64_t head = LOAD(ring->head), end;
	size_t never_committed = 0;

	for (uint64_t at = start; at < head; at = end) {
		uint64_t block_end = (at | (ring->bytes - 1)) + 1;
		uint64_t limit = head < block_end ? head : block_end;
		uint64_t header = LOAD(*ring_header_at(ring, at));
		size_t size = ring_record_bytes(header & RING_SIZE_MASK);
		bool is_whole = (header & RING_RESERVED) != 0 && size <= limit - at;

		end = header == 0 ? find_header(ring, at, limit) : is_whole ? at + size : limit;
		if (is_whole && (header >> RING_KIND_SHIFT & RING_KIND_MASK) != 0)
			continue;
		store_header(ring, at, ring_committed_header(RING_PADDING, end - at - RING_WORD));
		never_committed++;
	}
	if (head - start < ring->bytes)
		store_header(ring, head, 0); /* the end, whatever a crash has left there */
	atomic_store_explicit(&ring->taken, start, memory_order_relaxed);
	atomic_store_explicit(&ring->next, start, memory_order_relaxed);
	atomic_store_explicit(&ring->tail, start, memory_order_relaxed);
	return never_committed;
}
