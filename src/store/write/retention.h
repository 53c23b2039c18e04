/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the trace file within its limit: removes the oldest rows first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/write/writer.h"

/* Smaller limits count as this one, because the empty schema needs some space. */
#define RETENTION_MIN_BYTES (512 * 1024)

/* The log's size within the limit; max_bytes 0: no limit. */
int64_t retention_wal_bytes(int64_t max_bytes);

/* The most that one batch may write, so that it alone cannot exceed the limit. */
size_t retention_batch_bytes(int64_t max_bytes);

/* Free pages, which are used before the file grows. */
int64_t retention_free_bytes(struct writer *writer);

struct retention {
	bool trimming; /* between the upper mark and the lower one */
};

/* After a batch: begins epochs, removes everything above the upper mark, and for a few tens of
 * milliseconds everything above the lower one; the rest follows after the next batch.
 * `is_interrupted` may end it earlier. Adds the removed samples to `*trimmed`. SQLITE_OK or the
 * error. */
int retention_apply(struct retention *retention, struct writer *writer, int64_t max_bytes,
                    bool (*is_interrupted)(void), uint64_t *trimmed);
