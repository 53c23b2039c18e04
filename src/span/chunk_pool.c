/* SPDX-License-Identifier: Apache-2.0 */
#include "span/chunk_pool.h"

#include <string.h>

#include "collect/ring_reader.h"
#include "handler/ring.h"
#include "span/chunk.h"
#include "wire/record.h"
#include "wire/span_record.h"

#define POOL_CHUNKS 64 /* untouched pages cost nothing */
#define SITES_BYTES (1u << 20)

/* TAKEN: a thread has it, and nothing in it is to be published. */
enum pool_state { FREE, TAKEN, RECORDING };

struct pool_chunk {
	uint32_t state; /* atomic */
	uint32_t thread_id, flags;
	struct span_link of;
	uint64_t began_ns, realtime_offset, dropped;
	struct span_chunk chunk;
};

static struct pool {
	uint32_t newest_site, site_bytes; /* atomic: the content of `sites` is complete */
	char sites[SITES_BYTES];          /* each begins at a multiple of 8 */
	struct pool_chunk chunks[POOL_CHUNKS];
} * pool;

size_t chunk_pool_bytes(void)
{
	return sizeof(struct pool);
}

void chunk_pool_use(void *memory)
{
	/* Release: threads may run already. */
	__atomic_store_n(&pool, memory, __ATOMIC_RELEASE);
}

static bool is_detached;

void chunk_pool_detach_in_child(void)
{
	chunk_pool_use(NULL);
	is_detached = true;
}

bool chunk_pool_is_used(void)
{
	return is_detached || __atomic_load_n(&pool, __ATOMIC_RELAXED);
}

struct span_chunk *chunk_pool_acquire(void)
{
	struct pool *here = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);

	for (int i = 0; here && i < POOL_CHUNKS; i++) {
		struct pool_chunk *chunk = &here->chunks[i];
		uint32_t found = FREE;

		/* Acquire, with chunk_pool_give(): another thread may have had it. */
		if (__atomic_compare_exchange_n(&chunk->state, &found, TAKEN, false, __ATOMIC_ACQUIRE,
		                                __ATOMIC_RELAXED))
			return &chunk->chunk;
	}
	return NULL;
}

static struct pool_chunk *find(const struct span_chunk *chunk)
{
	struct pool *here = __atomic_load_n(&pool, __ATOMIC_RELAXED);
	uintptr_t at = here ? (uintptr_t)chunk - (uintptr_t)here->chunks : UINTPTR_MAX;

	return at < sizeof(here->chunks) ? &here->chunks[at / sizeof(here->chunks[0])] : NULL;
}

bool chunk_pool_give(const struct span_chunk *chunk)
{
	struct pool_chunk *found = find(chunk);

	if (found)
		__atomic_store_n(&found->state, FREE, __ATOMIC_RELEASE);
	return found != NULL;
}

void chunk_pool_set_part(const struct span_chunk *chunk, const struct span_batch *part)
{
	struct pool_chunk *found = find(chunk);

	if (!found)
		return;
	found->of = part->of;
	found->thread_id = part->thread_id;
	found->flags = part->flags;
	found->began_ns = part->began_ns;
	found->realtime_offset = part->realtime_offset;
	found->dropped = part->dropped;
	/* Release: a thread that is killed after this has written all of it. */
	__atomic_store_n(&found->state, RECORDING, __ATOMIC_RELEASE);
}

void chunk_pool_withdraw(const struct span_chunk *chunk)
{
	struct pool_chunk *found = find(chunk);

	if (found)
		__atomic_store_n(&found->state, TAKEN, __ATOMIC_RELEASE);
}

void chunk_pool_add_site(const struct span_site_record *site, size_t size)
{
	struct pool *here = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
	uint32_t room = (uint32_t)(sizeof(uint64_t) + size + 7) & ~7u;
	uint64_t length = size;

	if (!here || site->number <= here->newest_site || room > SITES_BYTES - here->site_bytes)
		return;
	memcpy(here->sites + here->site_bytes, &length, sizeof(length));
	memcpy(here->sites + here->site_bytes + sizeof(length), site, size);
	here->newest_site = site->number;
	/* Release: after the entries that it counts. */
	__atomic_store_n(&here->site_bytes, here->site_bytes + room, __ATOMIC_RELEASE);
}

/* --- remains: written by a process that was killed at any moment ----------------------------------- */

static bool has_spans(const struct pool_chunk *chunk)
{
	return chunk->state == RECORDING && chunk->chunk.count && chunk->chunk.count <= CHUNK_ENTRIES;
}

bool chunk_pool_has_remains(const void *memory)
{
	const struct pool *left = memory;

	for (int i = 0; i < POOL_CHUNKS; i++)
		if (has_spans(&left->chunks[i]))
			return true;
	return false;
}

static uint64_t newest_time(const struct pool_chunk *chunk)
{
	const struct span_entry *entries = chunk->chunk.entry;
	uint64_t newest = chunk->began_ns;

	for (uint32_t i = 0; i < chunk->chunk.count; i += entry_group(&entries[i])) {
		uint64_t until = entries[i].start_ns;

		if (!entry_is_span(&entries[i]))
			continue;
		if (!(entries[i].duration & SPAN_OPEN))
			until += entries[i].duration & SPAN_DURATION;
		if (until > newest)
			newest = until;
	}
	return newest;
}

static bool write_part(struct ring *ring, const struct span_batch *part, const struct span_entry *entries)
{
	size_t bytes = part->entries * sizeof(*entries);
	struct span_batch *record = ring_try_reserve(ring, sizeof(*record) + bytes);

	if (!record)
		return false;
	memcpy(record, part, sizeof(*record));
	memcpy(record->entry, entries, bytes);
	ring_commit(ring, record, RECORD_SPANS);
	return true;
}

/* In parts that the ring takes. */
static void write_chunk(struct pool_chunk *chunk, struct ring *ring)
{
	size_t most = (ring_max_payload(ring) - sizeof(struct span_batch)) / sizeof(struct span_entry);
	struct span_entry *entries = chunk->chunk.entry;
	struct span_batch part = {
		.of = chunk->of,
		.realtime_offset = chunk->realtime_offset,
		.began_ns = chunk->began_ns,
		.dropped = chunk->dropped,
		.thread_id = chunk->thread_id,
		.flags = chunk->flags & (BATCH_ROOT | BATCH_REMOTE),
	};
	uint32_t count = entries_whole(entries, chunk->chunk.count), from = 0, to;

	chunk->chunk.count = count;
	part.ended_ns = newest_time(chunk);
	chunk_close_spans(&chunk->chunk, part.ended_ns);
	if (part.flags & BATCH_ROOT)
		part.flags |= BATCH_END;
	for (; from < count; from = to) {
		for (to = from; to < count && to - from + entry_group(&entries[to]) <= most;)
			to += entry_group(&entries[to]);
		part.first = chunk->chunk.first + from;
		part.entries = to - from;
		if (to == from || !write_part(ring, &part, entries + from)) {
			ring_count_dropped(ring, entries_spans(entries + from, count - from));
			return;
		}
	}
}

/* The process's own reader has had them: they are in no file until spans name them. */
static void write_sites(const struct pool *left, struct ring *ring)
{
	/* Multiples of 8: `at` never passes the end. */
	uint32_t end = (left->site_bytes < SITES_BYTES ? left->site_bytes : SITES_BYTES) & ~7u;
	uint64_t size;
	void *record;

	for (uint32_t at = 0; end - at > sizeof(size); at += (uint32_t)(sizeof(size) + size + 7) & ~7u) {
		memcpy(&size, left->sites + at, sizeof(size));
		if (size > end - at - sizeof(size) || !(record = ring_reserve(ring, size)))
			return;
		memcpy(record, left->sites + at + sizeof(size), size);
		ring_commit(ring, record, RECORD_SPAN_SITE);
	}
}

void chunk_pool_hand_over(void *memory, struct ring *ring)
{
	struct pool *left = memory;

	if (chunk_pool_has_remains(memory))
		write_sites(left, ring);
	for (int i = 0; i < POOL_CHUNKS; i++) {
		if (has_spans(&left->chunks[i]))
			write_chunk(&left->chunks[i], ring);
		left->chunks[i].state = FREE;
	}
}
