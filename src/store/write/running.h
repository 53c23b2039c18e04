/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries whose start has come and whose end has not. Their first sample told start and text,
 * the beginning of a long one; while the query runs, the flusher looks at it for the rest, in case
 * that it never ends.
 */
#ifndef QUERYPROF_STORE_WRITE_RUNNING_H
#define QUERYPROF_STORE_WRITE_RUNNING_H

#include "store/write/writer.h"

/* The start of the query in this row, and its end, as they come. */
void running_started(struct writer *writer, struct query_key key, int64_t row);
void running_ended(struct writer *writer, int64_t row);

/* At the end of a batch: what is seen of those that still run. SQLITE_OK or the error. */
int running_write(struct writer *writer);

#endif
