/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a statement's program: one that names it, and after it as many as its rows
 * need. A program is published once a process. A run's counts of its loops are in rows, too.
 */
#ifndef QUERYPROF_WIRE_PROGRAM_RECORD_H
#define QUERYPROF_WIRE_PROGRAM_RECORD_H

#include "wire/record.h"

/* Its texts stand one behind the other, as in struct query_record. */
struct program_record {
	uint64_t program; /* hash of the opcodes, the text and the library; as in struct query_record */
	uint64_t plan;    /* hash of the plan */
	uint64_t layout;  /* as struct statement_part has it */
	uint64_t seen_ns; /* CLOCK_REALTIME */
	uint32_t query_size;
	uint32_t library_size;
	uint32_t plan_size; /* the plan as text, a line a node, indented by its depth */
	uint32_t flags;     /* enum query_flags */
	char text[];
};

/* Whole lines, each ends in a newline; fields are separated by tabs:
 *   N node parent detail compared    of the plan, or of what the plan does not name
 *   O address node opcode p1 p2 p3 p5
 *   L node loops rows                that SQLite has counted in the query
 *   M reason                         a sentence: why the program's plan was not read */
struct program_rows_record {
	uint64_t program;
	struct query_key query; /* zero: the rows are the program's own */
	uint32_t size;
	char text[];
};

/* Bytes of text in one record. */
#define PROGRAM_ROWS_BYTES 1536u

#endif
