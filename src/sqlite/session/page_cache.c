/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/page_cache.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "sqlite/session/session.h"
#include "timers/threads.h"

#define INTERVAL_NS 1000000000u

void page_cache_reset(struct page_cache *cache)
{
	*cache = (struct page_cache){ .due_ns = clock_ns(CLOCK_MONOTONIC) + INTERVAL_NS };
}

/* False: the library is older than the counter. */
static bool read_status(const struct session *session, int what, uint32_t *value)
{
	int now = 0, most = 0;
	bool is_known = host_api(session->library)->db_status(session->db, what, &now, &most, 0) == SQLITE_OK;

	*value = is_known ? (uint32_t)now : 0;
	return is_known;
}

/* The file is not opened: closing it would drop the host's locks. */
static uint64_t size_of_file(const char *path)
{
	struct stat status;
	int before = errno;
	bool is_file = path && *path && stat(path, &status) == 0 && S_ISREG(status.st_mode);

	errno = before;
	return is_file ? (uint64_t)status.st_size : CONNECTION_NO_FILE;
}

/* A counter that is lower than it was has begun again: it is full, or the host has set it to zero. */
static void add_up(struct page_cache *cache, enum page_cache_count which, uint32_t now)
{
	cache->counts[which] += now >= cache->newest[which] ? now - cache->newest[which] : now;
	cache->newest[which] = now;
}

static void write_record(struct session *session, const struct thread *thread, uint64_t now_ns,
                         bool is_closing)
{
	static const int whats[PAGE_CACHE_COUNTS] = {
		[PAGE_CACHE_HITS] = SQLITE_DBSTATUS_CACHE_HIT,
		[PAGE_CACHE_MISSES] = SQLITE_DBSTATUS_CACHE_MISS,
		[PAGE_CACHE_WRITES] = SQLITE_DBSTATUS_CACHE_WRITE,
		[PAGE_CACHE_SPILLS] = SQLITE_DBSTATUS_CACHE_SPILL,
	};
	struct page_cache *cache = &session->page_cache;
	struct connection_record head = {
		.realtime_ns = now_ns + thread->realtime_offset_ns,
		.is_closing = is_closing,
		.session = session->number,
		.thread_id = thread->id,
	}, *record;
	const char *path = host_api(session->library)->db_filename(session->db, "main");
	struct ring *ring = sampler_ring();
	uint32_t value;

	for (unsigned i = 0; i < PAGE_CACHE_COUNTS; i++) {
		if (read_status(session, whats[i], &value))
			add_up(cache, i, value);
		else
			head.unknown |= 1u << i;
	}
	memcpy(head.counts, cache->counts, sizeof(head.counts));
	read_status(session, SQLITE_DBSTATUS_CACHE_USED, &value);
	head.cache_bytes = value;
	head.database_bytes = size_of_file(path);
	head.database_size = (uint32_t)strnlen(path ? path : "", 1024);
	record = ring ? ring_reserve(ring, sizeof(*record) + head.database_size) : NULL;
	if (!record)
		return;
	*record = head;
	memcpy(record->text, path ? path : "", head.database_size);
	ring_commit(ring, record, RECORD_CONNECTION);
}

static void read_if_due(struct session *session, bool is_closing)
{
	const struct thread *thread = sampler_thread();
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct page_cache *cache = &session->page_cache;
	/* The last reading is due as soon as there was one. */
	bool is_due = now_ns >= cache->due_ns || (is_closing && cache->newest[PAGE_CACHE_HITS]);

	if (!thread || !is_due || !session->settings.log_queries)
		return;
	cache->due_ns = now_ns + INTERVAL_NS;
	write_record(session, thread, now_ns, is_closing);
}

void page_cache_read(struct session *session)
{
	read_if_due(session, false);
}

void page_cache_read_last(struct session *session)
{
	const sqlite3_api_routines *api = host_api(session->library);
	sqlite3_mutex *mutex = api->db_mutex(session->db);

	if (mutex && api->mutex_try(mutex))
		return;
	read_if_due(session, true);
	if (mutex)
		api->mutex_leave(mutex);
}
