/*
 * The ring between the threads being sampled and the flusher: lock-free, many
 * producers, one consumer, records of variable length, a fixed size.
 *
 * A producer that finds no room drops its record and counts it; it never waits.
 * ring_reserve, ring_commit and ring_wake are async-signal-safe and may be
 * interrupted by themselves on the same thread. The consumer side belongs to
 * one thread at a time.
 */
#ifndef QUERYPROF_HANDLER_RING_H
#define QUERYPROF_HANDLER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

#define RING_MIN_BYTES 4096u
#define RING_MAX_BYTES (1u << 30)

/* A ring of `bytes` rounded up to a power of two within the limits above, or
 * NULL with errno set when there is no memory. Not async-signal-safe. */
struct ring *ring_create(size_t bytes);

/* No producer may hold a reservation or come later. */
void ring_destroy(struct ring *ring);

/* In a forked child, before its other threads: what the parent's threads had in
 * the ring, committed or not, is gone. Positions go on from where they were. */
void ring_reset_in_child(struct ring *ring);

/* Largest payload that one record can carry. */
size_t ring_max_payload(const struct ring *ring);

/* Room for `size` bytes of payload, 8-byte aligned and contiguous, or NULL, and
 * counted, when the ring is full or the size is over ring_max_payload(). Each
 * successful reserve must be followed by exactly one commit of its pointer by
 * the same thread. */
void *ring_reserve(struct ring *ring, size_t size);

/* Hands the record to the consumer and, when it half fills the ring or finds the
 * consumer in an unlimited sleep, wakes it with a futex. `kind` is not 0. */
void ring_commit(struct ring *ring, void *payload, unsigned kind);

/* Oldest committed record, or NULL when there is none yet. It stays valid until
 * ring_consume(), which frees its room. */
void *ring_peek(struct ring *ring, unsigned *kind, size_t *size);
void ring_consume(struct ring *ring);

/* Position behind the last reservation made so far, and behind the last record
 * consumed. Everything reserved before ring_head() was read has been consumed
 * once ring_tail() >= that value. Both only grow. */
uint64_t ring_head(const struct ring *ring);
uint64_t ring_tail(const struct ring *ring);

/* Sleeps until the ring is half full, ring_wake() was called or `timeout_ns` has
 * passed; timeout_ns < 0: also until the first record comes, without a limit. */
void ring_wait(struct ring *ring, int64_t timeout_ns);
void ring_wake(struct ring *ring);

size_t ring_bytes(const struct ring *ring);
uint64_t ring_dropped(const struct ring *ring); /* reservations refused so far */

#endif
