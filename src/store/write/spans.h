/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans (wire/span_record.h) in the file: one row per batch, whose spans are one JSON text. One row
 * per span would take the flusher five times as long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/vector.h"
#include "store/write/prepared.h"

struct writer;

struct span_writer {
	struct hash_table unkept; /* traces */
	VECTOR(uint64_t) children;
	size_t stored; /* spans of the batch */
	struct {
		struct prepared add_note, add_link, add_wait;
	} sql;
};

extern const struct span_writer span_writer_new;
void span_writer_free(struct span_writer *spans);

/* Inside a transaction. SQLITE_OK or the error. */
int spans_add(struct writer *writer, const void *record, size_t size);

/* The number of spans in a record, for the counter of lost spans. */
uint64_t spans_in(const void *record, size_t size);

/* Inside a transaction: removes batches that began before `time_ns`, at most about `bytes` of them;
 * INT64_MAX: of any time. *left: there are more. */
int spans_remove(struct writer *writer, int64_t time_ns, int64_t bytes, bool *left);
