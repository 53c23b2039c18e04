/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire/ring_layout.h explains how an uncommitted record is recognised. A host that crashed may have
 * overwritten anything, so a header that leads out of the reserved space is not trusted.
 * No other thread has the copy, so all orders are relaxed.
 */
#include "collect/ring_remains.h"

#include "collect/ring_reader.h"
#include "wire/ring_layout.h"

#define LOAD(position) __atomic_load_n(&(position), __ATOMIC_RELAXED)

struct ring *ring_remains_find(void *memory, size_t size)
{
	struct ring *ring = memory;

	if (size < RING_FRONT)
		return NULL;
	const size_t bytes = ring->bytes;
	if (bytes < RING_MIN_BYTES || bytes > RING_MAX_BYTES || (bytes & (bytes - 1)) != 0 ||
	    RING_FRONT + bytes != size)
		return NULL;
	uint64_t tail = LOAD(ring->tail), taken = LOAD(ring->taken), head = LOAD(ring->head);
	bool is_ordered = tail <= taken && taken <= head && head - tail <= bytes;
	bool is_aligned = ((tail | taken | head) & (RING_WORD - 1)) == 0;
	return is_ordered && is_aligned ? ring : NULL;
}

bool ring_remains_empty(const struct ring *ring)
{
	return LOAD(ring->taken) == LOAD(ring->head);
}

#define UNSOUND UINT64_MAX

/* The end of the committed records, from the next one on. */
static uint64_t committed_end(struct ring *ring)
{
	uint64_t head = LOAD(ring->head), at = LOAD(ring->next);

	if (at > head || head - at > ring->bytes || (at & (RING_WORD - 1)) != 0)
		return UNSOUND;
	while (at < head) {
		uint64_t block_end = (at | (ring->bytes - 1)) + 1;
		uint64_t header = LOAD(*ring_header_at(ring, at));
		size_t size = ring_record_bytes(header & RING_SIZE_MASK);

		if ((header >> RING_KIND_SHIFT & RING_KIND_MASK) == 0)
			return at; /* being written: the next read gets it */
		if ((header & RING_RESERVED) == 0 || size > (head < block_end ? head : block_end) - at)
			return UNSOUND;
		at += size;
	}
	return at;
}

bool ring_remains_sound(struct ring *ring)
{
	return committed_end(ring) != UNSOUND;
}

static void set_tail(struct ring *ring, uint64_t tail)
{
	__atomic_store_n(&ring->taken, tail, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->next, tail, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELAXED);
}

static bool copy_between(struct ring *ring, uint64_t from, uint64_t to, ring_copy_function copy,
                         void *context)
{
	bool is_copied = true;

	while (is_copied && from < to) {
		uint64_t block_end = (from | (ring->bytes - 1)) + 1, end = to < block_end ? to : block_end;

		is_copied = copy(context, (const void *)ring_header_at(ring, from), end - from);
		from = end;
	}
	return is_copied;
}

bool ring_remains_copy(struct ring *ring, ring_copy_function copy, void *context)
{
	return copy_between(ring, LOAD(ring->taken), LOAD(ring->head), copy, context);
}

/* The first pass shows which records are committed. The second pass copies all of these, because a
 * copy may read a payload before its header. The second copy is the one that is checked. */
__attribute__((no_sanitize("thread"))) /* which does not support fences */
bool
ring_remains_copy_committed(struct ring *ring, ring_copy_function copy, void *context)
{
	uint64_t end;

	set_tail(ring, LOAD(ring->taken));
	if (!ring_remains_copy(ring, copy, context) || (end = committed_end(ring)) == UNSOUND)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return copy_between(ring, LOAD(ring->taken), end, copy, context) && ring_remains_sound(ring);
}

static void store_header(struct ring *ring, uint64_t at, uint64_t header)
{
	__atomic_store_n(ring_header_at(ring, at), header, __ATOMIC_RELAXED);
}

/* The next word that is not zero, or the limit: the end of a reservation without a header. */
static uint64_t find_header(struct ring *ring, uint64_t at, uint64_t limit)
{
	while (at < limit && LOAD(*ring_header_at(ring, at)) == 0)
		at += RING_WORD;
	return at;
}

size_t ring_remains_repair(struct ring *ring)
{
	uint64_t start = LOAD(ring->taken), head = LOAD(ring->head), end;
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
	set_tail(ring, start);
	return never_committed;
}

/* In the order of ring_release(). */
void ring_remains_free(void *memory, const struct ring *copy, uint64_t tail, uint64_t new_tail)
{
	struct ring *ring = memory;

	if (new_tail <= tail)
		return;
	__atomic_store_n(&ring->next, new_tail, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->taken, new_tail, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	for (uint64_t at = tail; at < new_tail; at += RING_WORD)
		__atomic_store_n(&ring->block[(at & (copy->bytes - 1)) / RING_WORD], 0, __ATOMIC_RELAXED);
	/* Release: a producer that sees the tail also sees the zeros. */
	__atomic_store_n(&ring->tail, new_tail, __ATOMIC_RELEASE);
}
