/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A span begins and ends: qp_span_begin() and qp_span_end() of queryprof.h, which are defined
 * here, as every nanosecond counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "span/context.h"

/* Ends and marks a span that runs, now. */
void span_close(struct span_chunk *chunk, struct span_entry *entry);

/* Whether the span is the thread's running one, or encloses it. */
bool span_is_running(uint64_t number);

/* If so, makes it the running one. The spans inside it were abandoned: they end, and are marked. */
void span_close_inner(uint64_t number, uint64_t now_ns);

/* The entry of a span that runs and will be the next one's parent, or will not. NULL: no room. */
static inline struct span_entry *span_put(struct qp_span_context *context, uint32_t site, uint64_t *number)
{
	struct span_entry *entry = context_room(context, 1, number);

	if (entry)
		*entry = (struct span_entry){
			.duration = SPAN_OPEN,
			.parent = span_distance(*number, span_current.id),
			.site = site,
		};
	return entry;
}
