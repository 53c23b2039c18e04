/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement's plan, and which of its nodes each opcode of its program works for.
 *
 * Both come from the statement with EXPLAIN QUERY PLAN before it, prepared and never run: its
 * program is the statement's own, with an opcode Explain for each node in front of the code that
 * was made for it. An opcode that uses a cursor belongs to the node that moves the cursor, as
 * SQLite's own SQLITE_ENABLE_STMT_SCANSTATUS has it; any other one to the loop or step whose code
 * it stands in. What the plan does not name has nodes that are made here: the tables and indexes that are
 * modified, and triggers.
 */
#ifndef QUERYPROF_WATCH_PLAN_H
#define QUERYPROF_WATCH_PLAN_H

#include "base/vector.h"
#include "watch/plan/opcode_places.h"

struct plan_node {
	int32_t id, parent; /* as EXPLAIN QUERY PLAN has them, but for loops; parent 0: the statement */
	uint32_t at;        /* the opcode that its Explain stands before */
	char detail[512];
	char compared[256]; /* the columns of the table that it scans; plan_columns.h */
};

struct plan_opcode {
	struct opcode_bytes bytes;
	const char *name;
	uint32_t address;  /* in the statement's program */
	int32_t node;      /* an id, 0: the statement's own */
	int32_t to, to_p3; /* the opcodes at P2 and at P3, if they are jumps */
};

/* Starts as { 0 }. */
struct plan {
	VECTOR(struct plan_node) nodes;
	VECTOR(struct plan_opcode) opcodes;
};

/* Reads the program of a prepared EXPLAIN QUERY PLAN. Nothing of it is used later. False: no
 * memory. */
bool plan_read(struct plan *plan, const struct opcode_library *library, const void *explained);

/* Whether the statement whose opcodes these are executes this program; then the plan has its
 * opcodes. */
bool plan_match(struct plan *plan, const struct opcode_library *library, const struct opcode_bytes *opcodes,
                uint32_t count);

void plan_free(struct plan *plan);

#endif
