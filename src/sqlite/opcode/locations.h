/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locations in which a SQLite library keeps the opcode that it executes (handler/opcode.h), found
 * by trial: a private in-memory connection runs statements whose functions and collations belong to
 * queryprof. Each is called by one known opcode. The content of the registers and stack slots of the
 * interpreter's frame at that moment is compared with the analysis of the interpreter's code (flow.h).
 * If they differ, or the code is not understood, no sample has an opcode. The only assumption about the
 * library is that a statement has an array of opcodes that begin as EXPLAIN shows them.
 */
#pragma once

#include <string.h>

#include "handler/opcode.h"
#include "sqlite/library/host.h"
#include "sqlite/opcode/names.h"
#include "sqlite/library/callbacks.h"
#include "sqlite/library/module_list.h"

/* An opcode in memory. */
struct opcode_bytes {
	unsigned char opcode;
	signed char p4_type;
	uint16_t p5;
	int32_t p1, p2, p3;
	const char *p4;
};

/* sqlite3_stmt_scanstatus() */
typedef int scan_status_function(sqlite3_stmt *stmt, int loop, int what, void *to);

/* The locations that were found in one library. */
struct opcode_library {
	struct opcode_locations locations;
	struct callback_locations callbacks;
	uint32_t modules;  /* in a connection: its list of modules; 0: not known */
	uint32_t counters; /* in the statement: sqlite3_stmt_status() by its numbers; 0: not known */
	uint32_t calls;    /* of the library's that were checked */
	scan_status_function *scan_status;      /* NULL: it does not count loops */
	char names[OPCODES][OPCODE_NAME_BYTES]; /* "": not known */
};

/* Builds with comments or counters have these after it. */
static inline const struct opcode_bytes *opcode_at(const struct opcode_library *library, const void *bytecode,
                                                   uint32_t number)
{
	return (const void *)((const char *)bytecode + (size_t)number * library->locations.op_bytes);
}

/* The opcodes of a statement, and how many. */
static inline const void *opcode_bytecode(const struct opcode_library *library, const void *stmt,
                                          uint32_t *count)
{
	memcpy(count, (const char *)stmt + library->locations.n_op, sizeof(*count));
	return *(const void *const *)((const char *)stmt + library->locations.a_op);
}

/* The library's, NULL: not known. */
static inline const struct opcode_library *opcode_library(const struct host_library *library)
{
	return __atomic_load_n(&library->opcodes, __ATOMIC_ACQUIRE);
}

/* Determines them, once per library; inside a call of the thread that has no run. */
void opcode_library_learn_now(const struct host_library *library, const struct thread *thread);

static inline void opcode_library_learn(const struct host_library *library, const struct thread *thread)
{
	if (__builtin_expect(!__atomic_load_n(&library->opcodes_tried, __ATOMIC_RELAXED), 0))
		opcode_library_learn_now(library, thread);
}

/* The calling thread is inside it, so connections that it opens do not belong to the host. */
bool opcode_library_learning(void);
