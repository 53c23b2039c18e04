/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the ring, and its life: one thread at a time creates, reads,
 * waits and destroys. Records come out in the order of their reservation. Nothing here
 * is for the handler.
 */
#ifndef QUERYPROF_COLLECT_RING_READER_H
#define QUERYPROF_COLLECT_RING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/ring.h"

/* A ring of `bytes` rounded up to a power of two within RING_MIN_BYTES and
 * RING_MAX_BYTES. NULL with errno set when there is no memory. */
struct ring *ring_create(size_t bytes);

size_t ring_bytes(const struct ring *ring);

/* For tests: a process's own ring stays. No producer may hold a reservation or come later. */
void ring_destroy(struct ring *ring);

/* A ring in memory of the caller's, zero-filled, of ring_memory_bytes(bytes) at a page;
 * `bytes` is rounded as above. Its positions begin at `position`. */
size_t ring_memory_bytes(size_t bytes);
struct ring *ring_init(void *memory, size_t bytes, uint64_t position);

/* In a forked child, before its other threads: discards the records of the parent's
 * threads, committed or not. Positions go on from where they were. */
void ring_reset_in_child(struct ring *ring);

/* The oldest committed record that was not passed, or NULL when there is none yet. It stays
 * valid until its room is free. */
void *ring_peek(struct ring *ring, unsigned *kind, size_t *size);

/* Moves on behind it, and keeps it. */
void ring_pass(struct ring *ring);

/* The bytes of what was passed. */
size_t ring_passed(const struct ring *ring);

/* The records that were passed are stored, or lost: frees their room. */
void ring_release(struct ring *ring);

/* One record passed and released. */
void ring_consume(struct ring *ring);

/* The position behind the newest reservation, and behind the last released record. The
 * reader has released every record reserved before ring_head() was read once ring_tail()
 * has reached that value. Both only grow. */
uint64_t ring_head(const struct ring *ring);
uint64_t ring_tail(const struct ring *ring);

/* Records dropped so far. */
uint64_t ring_dropped(const struct ring *ring);

/* Sleeps until the ring is half full, ring_wake() was called or `timeout_ns` has
 * passed; timeout_ns < 0: without a limit, and the first record ends it as well. False: the time has
 * passed, and nothing else. */
bool ring_wait(struct ring *ring, int64_t timeout_ns);

/* The same with a limit, and the first record ends it. */
bool ring_wait_for_first(struct ring *ring, int64_t timeout_ns);

/* Any thread: ends the reader's sleep, or its next one. */
void ring_wake(struct ring *ring);

#endif
