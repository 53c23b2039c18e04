/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of what a thread has read and written of one b-tree of a database, for one statement, in about
 * a second.
 */
#pragma once

#include <stdint.h>

/* What the pages were. The view page_io has the names. */
enum page_kind {
	PAGE_UNKNOWN, /* no page that was read or written showed which b-tree it belongs to */
	PAGE_TABLE,
	PAGE_WITHOUT_ROWID,
	PAGE_INDEX,
	PAGE_SHADOW, /* a table that a virtual table keeps its content in */
	PAGE_SCHEMA, /* the b-tree of sqlite_schema, with page 1 */
	PAGE_OVERFLOW,
	PAGE_FREELIST,
	PAGE_POINTER_MAP,
	PAGE_JOURNAL,
	PAGE_WAL_HEADER,
	PAGE_KINDS
};

enum page_count {
	PAGE_READS, /* of pages, or parts of one, from the database or the WAL */
	PAGE_READ_BYTES,
	PAGE_WAL_READ_BYTES,
	PAGE_WRITES,    /* to the WAL, or, without one, to the database */
	PAGE_REWRITTEN, /* of these: the process had written the page before */
	PAGE_WAL_BYTES, /* with headers */
	PAGE_DATABASE_BYTES,
	PAGE_JOURNAL_BYTES,
	PAGE_JOURNAL_READ_BYTES,
	PAGE_COUNTS
};

/* The path of the database and the names of the b-tree and of its table are consecutive in `text`, without
 * terminators. Empty: not known, or none. */
struct page_record {
	uint64_t statement; /* its normalized_query_hash; 0: a preparation, or not known */
	uint64_t start_realtime_ns;
	uint64_t counts[PAGE_COUNTS];
	uint32_t kind; /* enum page_kind */
	uint32_t root; /* page of the b-tree; of PAGE_UNKNOWN the page itself; 0: several, not known, or none
	                */
	uint32_t thread_id;
	uint32_t database_size, btree_size, table_size;
	char text[];
};
