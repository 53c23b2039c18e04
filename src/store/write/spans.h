/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans (wire/span_record.h) in the file: a row a batch, whose spans are one JSON text. A row a
 * span would take the flusher five times as long.
 */
#ifndef QUERYPROF_STORE_WRITE_SPANS_H
#define QUERYPROF_STORE_WRITE_SPANS_H

#include "store/write/writer.h"

/* Inside a transaction. SQLITE_OK or the error. */
int spans_take(struct writer *writer, const void *record, size_t size);

/* The site of a number: at any time, and remembered for good. */
void spans_take_site(struct writer *writer, const void *record, size_t size);

/* The number of spans in a record, for the counter of those that were lost. */
uint64_t spans_in(const void *record, size_t size);

/* Inside a transaction: removes batches that began before `time_ns`, at most about `bytes` of
 * them; INT64_MAX: of any time. `*left`: there are more. */
int spans_remove(struct writer *writer, int64_t time_ns, int64_t bytes, bool *left);

/* Inside a transaction: removes the sites of statements that no batch can name any more. */
int spans_remove_sites(struct writer *writer);

#endif
