/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function's code as steps from instruction to instruction, and which locations hold one value at each of
 * them.
 */
#pragma once

#include "handler/unwind/rules.h"
#include "sqlite/opcode/effects.h"

#define STEP_NONE UINT32_MAX
#define TABLES_MAX 32
#define TABLE_MAX 256 /* entries */
#define PARTS_MAX 4
#define CALLEES_KNOWN 512

/* The locations that hold the address: the first STEP_REGISTERS bits are registers, the others slots. */
struct held {
	uint64_t words[4];
};

struct table {
	uint32_t jump; /* the step that goes by it */
	uint32_t count;
	uint32_t targets[TABLE_MAX]; /* steps */
};

/* Compilers move unlikely code elsewhere. */
struct part {
	uintptr_t start;
	uint32_t size;
	uint32_t at; /* as if the parts were consecutive */
};

/* The registers that a called function was found to change, looked into so deep. */
struct callee {
	uintptr_t function;
	int deep;
	uint32_t kills;
};

struct graph {
	struct cfi_section section;
	uintptr_t start, end; /* of the library's code */
	struct callee callees[CALLEES_KNOWN];
	uint32_t callee_bytes;
	struct part parts[PARTS_MAX]; /* the first belongs to the function itself */
	uint32_t part_count, size;
	int32_t above_stack; /* the CFA above the stack pointer, after the prologue */
	struct step *steps;
	uint32_t count;
	uint32_t *step_at;         /* for each byte, STEP_NONE: no instruction begins there */
	bool *is_target;           /* some step jumps there */
	struct held *in;           /* before each step */
	bool *is_reached, *is_due; /* due: its state has changed */
	struct table *tables;
	uint32_t table_count;
	bool has_changed;
};

/* Decodes the code from `start` to `end`, and the code elsewhere to which its branches lead.
 * False: nothing is known, because the code has another form, or memory ran out. */
bool graph_read(struct graph *graph, const struct code_map *map, uintptr_t start, uintptr_t end);

void graph_free(struct graph *graph);

/* The number of the step at an address, STEP_NONE: none begins there. */
uint32_t graph_step_at(const struct graph *graph, uintptr_t address);

const unsigned char *graph_code_of(const struct graph *graph, uint32_t offset);

bool graph_has(const struct held *held, uint32_t location);
bool graph_is_written(const struct step *step, uint32_t location);

/* Applies the step to the locations that hold the address. */
void graph_apply(const struct step *step, struct held *held);

/* Follows all paths from the first step; at a step with looked_at the value is known. False: it
 * does not terminate. */
bool graph_follow(struct graph *graph);

/* Follows the steps that were not reached, too, which unknown paths lead to; bytes that fill gaps are left.
 */
bool graph_follow_rest(struct graph *graph);
