/* SPDX-License-Identifier: Apache-2.0 */
#include "span/wait.h"

#include "span/context.h"
#include "span/run.h"

#define SHORTEST_NS 1000

void span_wait_put(uint64_t start_ns, const struct wait_field *wait)
{
	struct qp_span_context *context = qp_span_here;
	struct span_entry entry = {
		.start_ns = start_ns,
		.duration = wait->ns & SPAN_DURATION,
		.site = SITE_WAIT | wait->object << 8 | wait->cause,
	};
	struct span_chunk *chunk;
	uint32_t at;

	if (!context || wait->ns < SHORTEST_NS ||
	    __atomic_load_n(&span_statements, __ATOMIC_RELAXED) == STATEMENTS_OFF)
		return;
	chunk = context->chunk;
	if (chunk->count == CHUNK_ENTRIES) {
		context_put_alone(context, &entry);
		return;
	}
	at = chunk_acquire(chunk, 1);
	entry.parent = span_distance(chunk->first + at, span_current.id);
	chunk->entry[at] = entry;
}
