/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries whose start has come and whose end has not. Their first sample published start and text,
 * the beginning of a long one; while the query runs, the flusher looks at it for the rest, in case
 * that it never ends.
 */
#pragma once

#include "store/write/queries.h"

/* Writes the view of a query whose start is in the batch and whose end is not, if it still runs.
 * SQLITE_OK or the error. */
int running_write(struct writer *writer, const struct batch_query *entry);
