/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQLite counts of a connection's page caches (sqlite3_db_status()). The counters are read at the end of
 * a run that is logged, at most once a second, and when the connection is closed; a connection that lives for
 * less than a second is not read.
 */
#pragma once

#include <stdint.h>

#include "base/hot_path.h"
#include "wire/connection_record.h"

struct session;

/* Of a session. Guarded by its connection's mutex. */
struct page_cache {
	uint64_t due_ns; /* the next reading, by CLOCK_MONOTONIC */
	/* SQLite's counters have 32 bits: what they were, and what they have been in all. */
	uint32_t newest[PAGE_CACHE_COUNTS];
	uint64_t counts[PAGE_CACHE_COUNTS];
};

/* Of a session that begins. */
void page_cache_reset(struct page_cache *cache);

/* Writes a record if a reading is due. In a call for the session's connection, which is open and whose mutex
 * the thread has. */
COLD_PATH void page_cache_read(struct session *session);

/* The same for a connection that is about to be closed; takes its mutex, and does nothing while another
 * thread has that. */
COLD_PATH void page_cache_read_last(struct session *session);
