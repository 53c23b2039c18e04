/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of what SQLite counts of a connection, at one moment.
 */
#pragma once

#include <stdint.h>

/* Of the connection's page caches, since it was opened. */
enum page_cache_count {
	PAGE_CACHE_HITS,
	PAGE_CACHE_MISSES,
	PAGE_CACHE_WRITES,
	PAGE_CACHE_SPILLS,
	PAGE_CACHE_COUNTS
};

#define CONNECTION_NO_FILE UINT64_MAX

/* The path of the connection's database is in `text`, without a terminator. */
struct connection_record {
	uint64_t realtime_ns;
	uint64_t counts[PAGE_CACHE_COUNTS];
	uint64_t cache_bytes;
	uint64_t database_bytes; /* the size of the file, or CONNECTION_NO_FILE */
	uint32_t unknown;        /* bits of `counts` that the library does not count */
	uint32_t is_closing;
	uint32_t session, thread_id;
	uint32_t database_size;
	char text[];
};
