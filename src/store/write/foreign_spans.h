/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries as spans of traces that another tracer began. If a query's labels, comments or thread
 * context (write/labels.h) name a trace and a span, the query is a child of that span, whether or not
 * its thread had a trace of queryprof. If it had one with the same id, the span from that trace
 * represents the query.
 */
#ifndef QUERYPROF_STORE_WRITE_FOREIGN_SPANS_H
#define QUERYPROF_STORE_WRITE_FOREIGN_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "wire/query_record.h"

struct span_link;
struct writer;

/* Rows of trace_contexts, statements and label_sets; 0: none. */
struct foreign_names {
	int64_t context, statement, labels;
};

/* Inside a transaction, both: SQLITE_OK or the error. A query has ended, whose text begins at `text`. */
int foreign_spans_add(struct writer *writer, const struct query_record *record,
                      const struct foreign_names *names, const char *text, size_t size);

/* A span of this query came with this trace, in the row of this number. The row exists before the
 * other one is removed, so a reader that follows the file by the numbers does not meet one of them
 * again. */
int foreign_spans_release(struct writer *writer, const struct span_link *trace, struct query_key query,
                          int64_t row);

#endif
