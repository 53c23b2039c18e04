/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes and opcodes of a plan (plan.h).
 */
#pragma once

#include "base/vector.h"
#include "sqlite/opcode/locations.h"

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
