/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement's plan, and the node for which each opcode of its bytecode works.
 *
 * Both come from EXPLAIN QUERY PLAN of the statement, which is prepared and never run. Its bytecode
 * is the statement's own, with an additional opcode Explain for each node, before the code that
 * SQLite made for the node (mapping.h). The bytecode of triggers that the statement calls, and of the
 * actions of foreign keys, follows in the same form. So each has a plan of its own, below a node that
 * is made here. Bytecode that such bytecode calls has only that node.
 */
#ifndef QUERYPROF_SQLITE_PLAN_PLAN_H
#define QUERYPROF_SQLITE_PLAN_PLAN_H

#include "base/vector.h"
#include "sqlite/plan/bytecode_copy.h"

struct plan_node {
	/* The numbers of EXPLAIN QUERY PLAN, except for loops, and continued from the previous
	 * plans; parent 0: the statement. */
	int32_t id, parent;
	uint32_t at;  /* the opcode after its Explain */
	bool is_made; /* of modified objects, which EXPLAIN QUERY PLAN does not name */
	char detail[512];
	char compared[256]; /* the columns of the table that it scans; columns.h */
};

struct plan_opcode {
	struct opcode_bytes bytes;
	const char *name;
	uint32_t address;  /* in the bytecode that is executed */
	int32_t node;      /* an id, 0: the statement's own */
	int32_t to, to_p3; /* the opcodes at P2 and at P3, if they are jumps */
	uint32_t calls;    /* the plan of that number in `called`, from 1 on; 0: none */
};

/* Starts as { 0 }. */
struct plan {
	VECTOR(struct plan_node) nodes;
	VECTOR(struct plan_opcode) opcodes;
	VECTOR(struct plan) called;
	int32_t root; /* the root node, the first; 0: the statement */
	int32_t last_id;
};

/* Reads the bytecode of a prepared EXPLAIN QUERY PLAN. Nothing of it is used later. False: no
 * memory, or bytecode that it calls cannot be read. */
bool plan_read(struct plan *plan, const struct opcode_library *library, const void *explained);

/* Whether the statement whose opcodes these are executes this bytecode; then the plan has its
 * opcodes. */
bool plan_match(struct plan *plan, const struct opcode_library *library, const struct bytecode_copy *live);

void plan_free(struct plan *plan);

#endif
