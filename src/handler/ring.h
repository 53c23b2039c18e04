/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring between the sampled threads and the flusher: lock-free, many producers,
 * one reader, records of variable length, a fixed size. This is the producers' side;
 * collect/ring_reader.h has the reader's side, wire/ring_layout.h describes the memory.
 *
 * A producer that finds no room drops its record and counts it; it never waits.
 * Everything here is async-signal-safe, and a handler may interrupt any of it on the
 * same thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ring;

#define RING_MIN_BYTES 4096u
#define RING_MAX_BYTES (1u << 30)

/* The largest payload that one record can carry. */
size_t ring_max_payload(const struct ring *ring);

/* Room for `size` bytes of payload, 8-byte aligned and contiguous. NULL, and one more
 * dropped record, when the ring is full or `size` is over ring_max_payload(). The same
 * thread must commit each reserved payload exactly once. */
void *ring_reserve(struct ring *ring, size_t size);

/* The same, and counts nothing: the caller can try again, or counts itself what is lost. */
void *ring_try_reserve(struct ring *ring, size_t size);

/* Adds to the dropped records what was in a record without space: rows, samples or spans. */
void ring_count_dropped(struct ring *ring, uint64_t count);

/* Publishes the record to the reader. Wakes the reader with a futex when the record
 * half fills the ring, or when the reader sleeps without a limit. `kind` is not 0. */
void ring_commit(struct ring *ring, void *payload, unsigned kind);
