/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries whose start has come and whose end has not. Their first sample told start and text,
 * the beginning of a long one; while the query runs, the flusher looks at it for the rest, in case
 * that it never ends.
 */
#ifndef QUERYPROF_STORE_WRITE_RUNNING_H
#define QUERYPROF_STORE_WRITE_RUNNING_H

#include "store/write/writer.h"

/* The batch has told the start of the query in this row, and not its end. */
void running_add(struct writer *writer, struct query_key key, int64_t row);

/* At the end of a batch: what is seen of those that still run. SQLITE_OK or the error. */
int running_write(struct writer *writer);

#endif
