/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of the statements that a connection had prepared and not finalized, at one moment.
 */
#pragma once

#include <stdint.h>

/* Fewer are usual: drivers and programs keep some hundreds to run them again. */
#define OPEN_STATEMENTS_MIN 1000u

/* The path of the connection's database and the beginning of a text are consecutive in `text`, without
 * terminators. Of the texts that were measured it is the one whose statements have the most memory. */
struct open_statements_record {
	uint64_t realtime_ns;
	uint64_t cache_bytes; /* of the connection's page caches */
	uint64_t bytes;       /* of the measured statements, by SQLITE_STMTSTATUS_MEMUSED; 0: not known */
	uint64_t text_bytes;  /* of those of them that have the text */
	uint64_t statement;   /* the normalized_query_hash of the text */
	uint32_t statements, measured, texts; /* texts: different ones among the measured */
	uint32_t text_statements;             /* measured that have the text */
	uint32_t session, thread_id;
	uint32_t database_size, query_size;
	char text[];
};
