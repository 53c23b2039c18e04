/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays in which a thread records its spans, and their way into the ring.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/span_record.h"

#define CHUNK_ENTRIES 1000u

struct span_chunk {
	uint64_t first; /* number of the first entry */
	uint32_t count;
	uint32_t open; /* spans that run; only of a chunk that is full */
	struct span_chunk *older;
	struct span_entry entry[CHUNK_ENTRIES];
};

/* The place of the first of `count` new entries, for which there is space. Read once: a signal
 * handler may take a place in between (wait.h), which is then released. */
static inline uint32_t chunk_acquire(struct span_chunk *chunk, uint32_t count)
{
	uint32_t at = __atomic_load_n(&chunk->count, __ATOMIC_RELAXED);

	__atomic_store_n(&chunk->count, at + count, __ATOMIC_RELAXED);
	return at;
}

/* Spans that run. */
uint32_t chunk_open_spans(const struct span_chunk *chunk);

/* Ends and marks the spans that run. Returns how many. */
uint32_t chunk_close_spans(struct span_chunk *chunk, uint64_t now_ns);

/* Its entries are then zeroes, so that an entry whose place is taken and that is not written yet
 * has no start. */
void chunk_clear(struct span_chunk *chunk);

/* How many of these entries are in whole groups: the thread may have been interrupted, or killed,
 * after it had taken the last one's place and before it wrote it. */
uint32_t entries_whole(const struct span_entry *entries, uint32_t count);

/* How many spans are in these entries, whole groups. */
uint32_t entries_spans(const struct span_entry *entries, uint32_t count);

/* Writes `count` entries to the ring, in records that fit, `first` being the number of the first;
 * `batch` has the other fields, and its flags go with the last record. False: there was not enough
 * space, and `batch->dropped` and the ring have counted the spans without space. sites_publish() comes
 * before, if they have sites of the host. */
bool entries_hand_over(const struct span_entry *entries, uint32_t count, uint64_t first,
                       struct span_batch *batch, const struct span_link *links);

/* The same for one span that has no site of the host; does not wait. Links have their own parents:
 * a batch with some is refused. Async-signal-safe. */
bool entry_hand_over(const struct span_entry *entry, struct span_batch *batch);

/* A batch without spans. It may use what spans leave to the samples. */
bool batch_hand_over(const struct span_batch *batch);
