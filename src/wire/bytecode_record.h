/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a statement's bytecode: one that names it, and after it as many as its rows
 * need. Bytecode is published once a process. A run's counts of its loops are in rows, too.
 */
#pragma once

#include "wire/record.h"

/* Its texts are consecutive, as in struct query_record. */
struct bytecode_record {
	uint64_t bytecode; /* hash of the opcodes, the text and the library; as in struct query_record */
	uint64_t plan;     /* hash of the plan */
	uint64_t layout;   /* as struct statement_part has it */
	uint64_t seen_ns;  /* CLOCK_REALTIME */
	uint32_t query_size;
	uint32_t library_size;
	uint32_t plan_size; /* the plan as text, a line a node, indented by its depth */
	uint32_t flags;     /* enum query_flags */
	char text[];
};

/* Rows of a statement's bytecode, or of what SQLite has counted in one run: each begins with struct
 * bytecode_row at a multiple of eight bytes. */
struct bytecode_rows_record {
	uint64_t bytecode;
	struct query_key query; /* zero: the rows belong to the bytecode itself */
	uint32_t size;          /* of all rows */
	_Alignas(8) char rows[];
};

enum bytecode_row_kind {
	ROW_NODE = 1, /* of the plan, or of what the plan does not name */
	ROW_OPCODE,
	ROW_LOOP,         /* of a run; the others are of the bytecode */
	ROW_MISSING_PLAN, /* in place of the others */
	ROW_MODULE_LOOP,  /* of a run */
};

struct bytecode_row {
	uint16_t kind;
	uint16_t size; /* of the whole row, a multiple of eight */
	int32_t node;  /* 0: the statement's own */
};

struct node_row {
	struct bytecode_row row;
	int32_t parent;
	uint16_t detail_size, compared_size;
	char text[]; /* detail, then compared */
};

struct opcode_row {
	struct bytecode_row row;
	uint64_t address;
	int32_t p1, p2, p3;
	uint16_t p5;
	uint16_t name_size;
	char name[];
};

struct loop_row {
	struct bytecode_row row;
	int64_t loops, rows;
	double estimate; /* rows that SQLite's planner expected of each start of the loop; negative: not known
	                  */
};

/* A loop whose opcode is known, not its node. */
struct module_loop_row {
	struct bytecode_row row; /* node 0 */
	uint64_t address;        /* as in struct opcode_row */
	int64_t loops, rows;
};

/* The node of the counts of all Bloom filters of a run: rows that were looked up in them, and rows that
 * passed. */
#define NODE_OF_FILTERS (-4)

struct missing_plan_row {
	struct bytecode_row row;
	uint64_t reason_size;
	char reason[]; /* a sentence: why the bytecode's plan was not read */
};

/* Bytes of rows in one record: all loops of a run fit. */
#define BYTECODE_ROWS_BYTES 2048u
