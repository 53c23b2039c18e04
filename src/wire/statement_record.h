/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The growth of a statement's counters, as a record: where another process stores what this
 * one counts (RECORD_STATEMENTS with content).
 */
#ifndef QUERYPROF_WIRE_STATEMENT_RECORD_H
#define QUERYPROF_WIRE_STATEMENT_RECORD_H

#include "wire/statement_counts.h"

struct statement_record {
	uint64_t hash;
	struct statement_part part;
	struct statement_counts counts;
	uint32_t text_size, database_size; /* with their final zeros */
	bool is_cut;
	char text[]; /* the statement's, the database's */
};

#endif
