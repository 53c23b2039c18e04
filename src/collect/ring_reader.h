/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the ring, and its life: one thread at a time creates, reads,
 * waits and destroys. Records come out in the order of their reservation. Nothing here
 * is for the handler.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/ring.h"

/* A ring of `bytes`, rounded up to a power of two within RING_MIN_BYTES and RING_MAX_BYTES. NULL
 * with errno set if memory runs out. */
struct ring *ring_create(size_t bytes);

size_t ring_bytes(const struct ring *ring);

/* For tests, because a process never destroys its ring. No producer may hold a reservation or follow. */
void ring_destroy(struct ring *ring);

/* A ring in memory of the caller's, zero-filled, of ring_memory_bytes(bytes) at a page;
 * `bytes` is rounded as above. Its positions begin at `position`. */
size_t ring_memory_bytes(size_t bytes);
struct ring *ring_init(void *memory, size_t bytes, uint64_t position);

/* In a forked child, before its other threads: discards the records of the parent's threads,
 * committed or not. Positions continue. */
void ring_reset_in_child(struct ring *ring);

/* The oldest committed record that the reader has not passed, or NULL. It stays valid until its
 * space is released. */
void *ring_peek(struct ring *ring, unsigned *kind, size_t *size);

/* Passes the record and keeps it. */
void ring_pass(struct ring *ring);

/* How many records follow, if the next one is not committed and the ring is not read any more: at least. */
size_t ring_left(struct ring *ring);

/* The bytes of the passed records. */
size_t ring_passed(const struct ring *ring);

/* The passed records are stored or lost: frees their space. */
void ring_release(struct ring *ring);

/* One record passed and released. */
void ring_consume(struct ring *ring);

/* The position after the newest reservation, and the position after the last released record. When
 * ring_tail() reaches an earlier value of ring_head(), the reader has released every record
 * reserved before that. Both only grow. */
uint64_t ring_head(const struct ring *ring);
uint64_t ring_tail(const struct ring *ring);

/* Records dropped so far. */
uint64_t ring_dropped(const struct ring *ring);

/* Sleeps until the ring is half full, ring_wake() is called or `timeout_ns` has passed. With
 * timeout_ns < 0 there is no time limit, and the first record also ends the sleep. False: only the
 * time has passed. */
bool ring_wait(struct ring *ring, int64_t timeout_ns);

/* The same with a limit, and the first record ends it. */
bool ring_wait_for_first(struct ring *ring, int64_t timeout_ns);

/* Any thread: ends the reader's sleep, or its next one. */
void ring_wake(struct ring *ring);
