/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries as spans of traces that another tracer began. If a query's labels, comments or thread
 * context (write/labels.h) name a trace and a span, the query is a child of that span, whether or not
 * its thread had a trace of queryprof. If it had one with the same id, the span from that trace
 * represents the query.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "store/write/prepared.h"
#include "wire/query_record.h"
#include "wire/span_record.h"

struct writer;

struct foreign_span_writer {
	struct hash_table known; /* traces, with the query that represents a span */
	struct {
		struct prepared find_trace, remove;
	} sql;
};

extern const struct foreign_span_writer foreign_span_writer_new;

/* The span of a query, as a record. */
struct foreign_span {
	uint64_t words[(sizeof(struct span_batch) + 2 * sizeof(struct span_entry)) / sizeof(uint64_t)];
};

/* Rows of trace_contexts, statements and label_sets; 0: none. */
struct foreign_names {
	int64_t context, statement, labels;
};

/* Inside a transaction. A query has ended, whose text begins at `text`. False: it is in no trace that is
 * kept, or `*code` has an error. */
bool foreign_spans_make(struct writer *writer, const struct query_record *record,
                        const struct foreign_names *names, const char *text, size_t size,
                        struct foreign_span *span, int *code);

/* The span is in the file. */
void foreign_spans_keep(struct writer *writer, const struct foreign_span *span, struct query_key query);

/* Inside a transaction: SQLITE_OK or the error. A span of this query arrived with this trace, in the row of
 * this number. That row exists before the other one is removed, so a reader that follows the file by the
 * numbers does not see a number twice. */
int foreign_spans_release(struct writer *writer, const struct span_link *trace, struct query_key query,
                          int64_t row);
