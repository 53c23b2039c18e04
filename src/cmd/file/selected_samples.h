/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of the selected runs (sql/read/selected.sql: the view selected_samples), in the order of time,
 * for commands that read all of them. All rows that they name are read into memory once, where a look-up
 * takes tens of ns.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The nodes of samples outside the known opcodes; see read/plan_nodes.sql. */
enum { NODE_UNKNOWN = -1, NODE_PREPARING = -2 };

/* Also row 0 of queries, "no query". */
struct selected_run {
	int64_t id, first_ns, last_ns, hash, program, call_stack, statement;
	int64_t alike;      /* the newest program that is like its own (alike_programs) */
	int64_t owner;      /* the thread_id of a run that had workers, else -1 */
	int64_t stepped_ns; /* when its preparation ended; INT64_MIN: it has none */
	int32_t comment;
	uint32_t number;  /* among the selected runs, from 1; 0: the run with id 0 */
	uint32_t opcodes; /* the number of its program's opcodes, from 1; 0: not read yet */
	bool is_logged, is_finished;
};

struct selected_series {
	int64_t id, thread, thread_id, period_ns;
	size_t near;   /* the index of its newest sample's run, or a hint for the next one */
	uint32_t type; /* see selected_samples_type() */
	uint32_t live; /* of memory */
	bool is_cpu, is_wait, is_memory, is_free;
};

/* Columns after `size` are read only if they are requested; the others are 0. phase: the node, or if that is
 * unknown, what the stack shows (stackPhase(), see stack_frames.h). call_stack: of the program's own code,
 * not of the run. */
struct selected_sample {
	int64_t time_ns, weight, size, stack, labels, opcode, wait, wait_ns, node, phase, context, span,
		call_stack;
	bool is_truncated, is_checkpoint, is_spill;
	const struct selected_run *run;
	const struct selected_series *series;
};

enum selected_column {
	SELECTED_STACK = 1,
	SELECTED_LABELS = 2,
	SELECTED_NODE = 4,
	SELECTED_WAIT = 8,
	SELECTED_WAIT_NS = 16,
	SELECTED_CHECKPOINT = 32,
	SELECTED_TRUNCATED = 64,
	SELECTED_CONTEXT = 128,
	SELECTED_SPAN = 256,
	SELECTED_PHASE = 512, /* with SELECTED_NODE and SELECTED_STACK */
	SELECTED_SPILL = 1024,
	SELECTED_CALL_STACK = 2048
};

/* A sample of memory that was not freed (the view live_memory) is followed by the same sample with the second
 * type. Those of frees are not passed on. */
#define SELECTED_MEMORY "MemorySample"
#define SELECTED_LIVE "MemoryLive"

struct selected_samples;

/* Rows that samples name are read with the first one. NULL: no memory. */
struct selected_samples *selected_samples_create(sqlite3 *db);
void selected_samples_free(struct selected_samples *samples);

/* Calls `take` for each sample, with those columns, until it returns false. An SQLite result: SQLITE_ABORT if
 * it did; the connection has the message of an error. Runs and series stay until selected_samples_free(). */
int selected_samples_each(struct selected_samples *samples, unsigned columns,
                          bool (*take)(void *context, const struct selected_sample *sample), void *context);

const char *selected_samples_type(const struct selected_samples *samples, uint32_t type);
