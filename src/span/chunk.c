/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans come in bursts that no ring could hold, samples do not: so spans leave a quarter of the
 * ring to them.
 */
#include "span/chunk.h"

#include <string.h>
#include <time.h>

#include "base/bounded_wait.h"
#include "collect/ring_reader.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "settings/setting.h"
#include "span/keep.h"
#include "wire/record.h"

BOUNDED_WAIT_DEFINE(for_room, "the end of a trace: room in the ring", BOUND_MS(60000),
                    "nothing: it wakes the flusher, and looks every 0.1 ms");
#define NAP_NS 100000

SETTING_NUMBER(wait_ms, "ms", 0, 60000, 0, .name = "trace_wait_ms",
               .description = "Longest time that a thread waits for space when it hands over spans; 0: "
                              "spans without space are dropped and counted");

static bool is_open(const struct span_entry *entry)
{
	return entry_is_span(entry) && entry->duration & SPAN_OPEN;
}

uint32_t entries_spans(const struct span_entry *entry, uint32_t count)
{
	uint32_t spans = 0;

	for (uint32_t i = 0; i < count; i += entry_group(&entry[i]))
		spans += entry_is_span(&entry[i]);
	return spans;
}

void chunk_clear(struct span_chunk *chunk)
{
	uint32_t count = chunk->count;

	/* A signal handler may have written after a place that was released (chunk_acquire()). */
	while (count < CHUNK_ENTRIES && (chunk->entry[count].start_ns || chunk->entry[count].site))
		count++;
	memset(chunk->entry, 0, count * sizeof(chunk->entry[0]));
	chunk->count = chunk->open = 0;
}

static bool is_written(const struct span_entry *entry)
{
	return !entry_is_span(entry) || entry->start_ns;
}

uint32_t entries_whole(const struct span_entry *entries, uint32_t count)
{
	uint32_t i = 0, group;

	while (i < count && is_written(&entries[i]) && (group = entry_group(&entries[i])) &&
	       group <= count - i)
		i += group;
	return i;
}

uint32_t chunk_open_spans(const struct span_chunk *chunk)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < chunk->count; i += entry_group(&chunk->entry[i]))
		open += is_open(&chunk->entry[i]);
	return open;
}

uint32_t chunk_close_spans(struct span_chunk *chunk, uint64_t now_ns)
{
	uint32_t closed = 0;

	for (uint32_t i = 0; i < chunk->count; i += entry_group(&chunk->entry[i])) {
		struct span_entry *entry = &chunk->entry[i];

		if (!is_open(entry))
			continue;
		entry->duration = (entry->duration & (SPAN_STATUS | SPAN_STATEMENT)) | SPAN_UNENDED |
		                  entry_lasted(entry, now_ns);
		closed++;
	}
	return closed;
}

/* --- the ring ------------------------------------------------------------------------------- */

static bool has_room(const struct ring *ring, size_t size)
{
	uint64_t tail = ring_tail(ring); /* first, so that the head is never behind it */

	return ring_head(ring) - tail + size <= ring_bytes(ring) / 4 * 3;
}

static bool wait_for_room(struct ring *ring, size_t size)
{
	uint64_t limit = BOUND_MS(__atomic_load_n(&wait_ms, __ATOMIC_RELAXED));
	struct bounded_wait wait;
	bool is_there = has_room(ring, size);

	if (is_there || !limit)
		return is_there;
	wait = bounded_wait_begin_within(&for_room, limit);
	do
		ring_wake(ring);
	while (!has_room(ring, size) && bounded_wait_nap(&wait, NAP_NS));
	return has_room(ring, size);
}

static bool write_batch(struct ring *ring, const struct span_batch *batch, const struct span_entry *entries,
                        const struct span_link *links)
{
	size_t entry_bytes = batch->entries * sizeof(*entries), link_bytes = batch->links * sizeof(*links);
	struct span_batch *record = ring_try_reserve(ring, sizeof(*record) + entry_bytes + link_bytes);

	if (!record)
		return false;
	memcpy(record, batch, sizeof(*record));
	if (entry_bytes)
		memcpy(record->entry, entries, entry_bytes);
	if (link_bytes)
		memcpy((char *)record->entry + entry_bytes, links, link_bytes);
	ring_commit(ring, record, RECORD_SPANS);
	return true;
}

bool batch_hand_over(const struct span_batch *batch)
{
	struct ring *ring = sampler_ring();

	return ring && write_batch(ring, batch, NULL, NULL);
}

static void count_dropped(struct ring *ring, uint32_t spans)
{
	keep_count(SPANS_DROPPED, spans);
	if (ring && spans)
		ring_count_dropped(ring, spans);
}

bool entry_hand_over(const struct span_entry *entry, struct span_batch *batch)
{
	struct ring *ring = sampler_ring();
	bool is_written;

	batch->entries = 1;
	is_written = ring && !batch->links && has_room(ring, sizeof(*batch) + sizeof(*entry)) &&
	             write_batch(ring, batch, entry, NULL);
	keep_count(SPANS_RECORDED, is_written);
	count_dropped(ring, !is_written);
	return is_written;
}

/* How many of `count` entries a record of `most` takes: whole groups. */
static uint32_t fit(const struct span_entry *entries, uint32_t count, size_t most)
{
	uint32_t end = 0;

	while (end < count && end + entry_group(&entries[end]) <= most)
		end += entry_group(&entries[end]);
	return end < count ? end : count;
}

bool entries_hand_over(const struct span_entry *entries, uint32_t count, uint64_t first,
                       struct span_batch *batch, const struct span_link *links)
{
	struct ring *ring = sampler_ring();
	size_t head = sizeof(*batch) + batch->links * sizeof(*links);
	size_t most = ring && head < ring_max_payload(ring)
	                      ? (ring_max_payload(ring) - head) / sizeof(*entries)
	                      : 0;
	uint32_t flags = batch->flags, from = 0, spans;
	bool is_written = most > 0;

	/* Also once for no entries, because the flags may be significant. */
	while (is_written) {
		batch->first = first + from;
		batch->entries = fit(entries + from, count - from, most);
		if (from + batch->entries < count)
			batch->flags = flags & ~(uint32_t)BATCH_END;
		else
			batch->flags = flags;
		is_written = (batch->entries || !count) &&
		             wait_for_room(ring, head + batch->entries * sizeof(*entries)) &&
		             write_batch(ring, batch, entries + from, links);
		from += is_written ? batch->entries : 0;
		if (from == count)
			break;
	}
	batch->flags = flags;
	spans = entries_spans(entries + from, count - from);
	batch->dropped += spans;
	keep_count(SPANS_RECORDED, entries_spans(entries, from));
	count_dropped(ring, spans);
	return is_written;
}
