/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks in memory that another process also holds (handover/shared_ring.h). If the process ends,
 * killed or by exec, before its threads have handed over the chunks, their content is not lost: the
 * other process closes the running spans and stores them.
 *
 * A forked child must not even read this memory before it has its own, because the parent's threads
 * continue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;
struct span_batch;
struct span_chunk;
struct span_site_record;

size_t chunk_pool_bytes(void);

/* --- in the process that records ------------------------------------------------------------- */

/* `memory`: chunk_pool_bytes() of zeros, which stay. */
void chunk_pool_use(void *memory);

/* In a forked child that gets no such memory. */
void chunk_pool_detach_in_child(void);

/* Whether chunks may be there, or have been in the parent's. */
bool chunk_pool_is_used(void);

/* NULL: there is none, or all are taken. */
struct span_chunk *chunk_pool_acquire(void);

/* False: it does not belong to the pool. */
bool chunk_pool_give(const struct span_chunk *chunk);

/* From now on the chunk has spans of this part of a trace; and has none that are to be published:
 * they go into the ring, or are dropped. Does nothing for other chunks. */
void chunk_pool_set_part(const struct span_chunk *chunk, const struct span_batch *part);
void chunk_pool_withdraw(const struct span_chunk *chunk);

/* A site that spans may name. One thread at a time, in the order of their numbers. */
void chunk_pool_add_site(const struct span_site_record *site, size_t size);

/* --- in the other process, when this one is gone ---------------------------------------------------- */

/* Whether there is something left. */
bool chunk_pool_has_remains(const void *memory);

/* Writes the rest into the ring, which counts the spans for which it has no space. */
void chunk_pool_hand_over(void *memory, struct ring *ring);
