/* SPDX-License-Identifier: Apache-2.0 */
#include "span/span.h"

#include "span/keep.h"
#include "span/site.h"

static uint64_t parent_of(uint64_t number, const struct span_entry *entry)
{
	return entry->parent ? number - entry->parent : 0;
}

__attribute__((noinline)) static qp_span begin_slowly(struct qp_span_context *context, qp_span_site *site)
{
	uint32_t number = __atomic_load_n(&site->number, __ATOMIC_RELAXED);
	struct span_entry *entry;
	qp_span span = { 0 };

	if (!number)
		number = site_number(site);
	entry = span_put(context, number, &span.id);
	if (!entry)
		return (qp_span){ 0 };
	span_current.id = span.id;
	entry->start_ns = fast_clock_ns(context->clock);
	return span;
}

qp_span(qp_span_begin)(qp_span_site *site)
{
	struct qp_span_context *context = qp_span_here;
	struct span_chunk *chunk;
	struct span_entry *entry;
	uint64_t id;
	uint32_t number, at;

	if (!context)
		return (qp_span){ 0 };
	chunk = context->chunk;
	/* Relaxed: nothing depends on the number. */
	number = __atomic_load_n(&site->number, __ATOMIC_RELAXED);
	if (__builtin_expect(!number || chunk->count == CHUNK_ENTRIES, 0))
		return begin_slowly(context, site);
	at = chunk_acquire(chunk, 1);
	entry = &chunk->entry[at];
	id = chunk->first + at;
	entry->duration = SPAN_OPEN;
	entry->children = 0;
	entry->parent = span_distance(id, span_current.id);
	entry->site = number;
	span_current.id = id;
	/* Last, so that the time to begin it does not count for the span. */
	entry->start_ns = fast_clock_ns(context->clock);
	return (qp_span){ id };
}

static void close_entry(struct span_chunk *chunk, struct span_entry *entry, uint64_t now_ns, uint64_t flags)
{
	bool was_open = entry->duration & SPAN_OPEN;

	entry->duration =
		(entry->duration & (SPAN_STATUS | SPAN_STATEMENT)) | flags | entry_lasted(entry, now_ns);
	if (was_open)
		context_ended(chunk);
}

void span_close(struct span_chunk *chunk, struct span_entry *entry)
{
	close_entry(chunk, entry, context_now_ns(), SPAN_UNENDED); /* nothing may be recorded now */
}

/* Looks from the innermost one on. A span's number is higher than its parent's. */
bool span_is_running(uint64_t number)
{
	struct span_chunk *chunk;
	uint64_t at = span_current.id;

	while (at > number) {
		const struct span_entry *entry = context_find(at, &chunk);

		if (!entry)
			return false;
		at = parent_of(at, entry);
	}
	return at == number;
}

void span_close_inner(uint64_t number, uint64_t now_ns)
{
	while (span_current.id != number) {
		struct span_chunk *chunk;
		struct span_entry *entry = context_find(span_current.id, &chunk);
		uint64_t parent = parent_of(span_current.id, entry);

		span_current.id = parent;
		if (!(entry->duration & SPAN_OPEN))
			continue;
		close_entry(chunk, entry, now_ns, SPAN_UNENDED);
		keep_count(SPANS_UNENDED, 1);
	}
}

__attribute__((noinline)) static void end_slowly(uint64_t number)
{
	struct span_chunk *chunk;
	struct span_entry *entry = context_find(number, &chunk);
	uint64_t now;

	if (!entry || !entry_is_span(entry) || !(entry->duration & (SPAN_OPEN | SPAN_UNENDED)))
		return;
	now = fast_clock_ns(qp_span_here->clock);
	if (span_is_running(number)) {
		span_close_inner(number, now);
		span_current.id = parent_of(number, entry);
	}
	close_entry(chunk, entry, now, 0);
}

void(qp_span_end)(qp_span span)
{
	struct qp_span_context *context = qp_span_here;
	struct span_chunk *chunk;
	struct span_entry *entry;
	uint64_t number, now;

	if (!context)
		return;
	chunk = context->chunk;
	number = span.id - chunk->first;
	if (__builtin_expect(number >= chunk->count || span.id != span_current.id, 0)) {
		end_slowly(span.id);
		return;
	}
	now = fast_clock_ns(context->clock);
	entry = &chunk->entry[number];
	entry->duration = (entry->duration & SPAN_STATUS) | entry_lasted(entry, now);
	span_current.id = parent_of(span.id, entry);
}
