/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring's memory, as its two sides see it: the producers (ring.c) and the one reader
 * (collect/ring_reader.c). Other code uses ring.h and ring_reader.h.
 *
 * The ring is one block of words and two positions that only grow. A producer advances `head` by
 * compare-and-swap and owns the words that it passed. A record is a header word and its payload,
 * 8-byte aligned and never split: padding precedes a record that would cross the end of the block.
 * The header shows whether the record is committed, so the reader sees records in the order of their
 * reservation, whichever producer commits first. The reader fills a record with zeros before it
 * advances `tail` past it: a word that no producer has committed reads as "not committed", and
 * producers need not clear anything.
 *
 * The memory may be shared with a process that continues to read after this one has ended
 * (collect/ring_remains.h), so it contains no pointers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_CACHE_LINE 64
#define RING_WORD sizeof(uint64_t)

/* A header: the payload's size in the low bits, the kind above. RESERVED distinguishes an empty
 * payload from free memory. */
#define RING_SIZE_MASK 0xffffffffull
#define RING_KIND_SHIFT 32
#define RING_RESERVED (1ull << 63)
#define RING_KIND_MASK 0x7fffffffu
#define RING_PADDING RING_KIND_MASK

/* The futex word on which the reader sleeps. */
enum ring_sleep {
	RING_AWAKE,
	RING_SLEEP_TIMED,   /* wake the reader when the ring is half full */
	RING_SLEEP_IDLE,    /* wake it at the first record */
	RING_SLEEP_STALLED, /* the oldest record is being written: the reader polls */
};

/* The block follows the ring's own fields, at a page boundary. */
#define RING_FRONT 4096

/* One cache line for each writer: the producers', the reader's, the constants'. All except `bytes`
 * are atomic. */
struct ring {
	_Alignas(RING_CACHE_LINE) uint64_t head;
	uint64_t dropped;

	_Alignas(RING_CACHE_LINE) uint64_t tail;
	uint64_t next;  /* the record that is read next */
	uint64_t taken; /* everything before is stored, or lost */
	uint32_t sleep; /* enum ring_sleep */
	uint32_t wake_requested;

	_Alignas(RING_CACHE_LINE) size_t bytes; /* of the block, a power of two */
	_Alignas(RING_FRONT) uint64_t block[];
};

/* --- memory orders that the two sides share ---------------------------------- */

/* Acquire: a producer writes into freed space only after the reader's zeros. The head that is
 * loaded next is at least as new as this tail. */
static inline uint64_t ring_load_tail(const struct ring *ring)
{
	return __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

/* Sequentially consistent, both this store and the producer's load of `sleep` after it; the reader
 * stores `sleep` and then loads the header. One of the two sees the other's store: otherwise a
 * record could remain there while the reader sleeps without a limit. The store also releases the
 * payload. */
static inline void ring_publish_header(uint64_t *header, uint64_t value)
{
	__atomic_store_n(header, value, __ATOMIC_SEQ_CST);
}

/* --- places and headers ------------------------------------------------------- */

static inline uint64_t *ring_header_at(struct ring *ring, uint64_t position)
{
	return ring->block + (position & (ring->bytes - 1)) / RING_WORD;
}

/* The bytes of a record with its header. */
static inline size_t ring_record_bytes(size_t payload)
{
	return RING_WORD + ((payload + RING_WORD - 1) & ~(RING_WORD - 1));
}

static inline uint64_t ring_committed_header(unsigned kind, size_t size)
{
	return RING_RESERVED | (uint64_t)(kind & RING_KIND_MASK) << RING_KIND_SHIFT | size;
}

static inline uint64_t ring_used_bytes(const struct ring *ring)
{
	/* The tail first, so that it is never ahead of the head. Relaxed for the head: the result
	 * is a hint of how full the ring is. */
	uint64_t tail = ring_load_tail(ring);
	return __atomic_load_n(&ring->head, __ATOMIC_RELAXED) - tail;
}

static inline bool ring_is_half_full(const struct ring *ring)
{
	return ring_used_bytes(ring) >= ring->bytes / 2;
}
