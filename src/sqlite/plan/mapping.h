/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which node of its plan each opcode of bytecode works for.
 *
 * An opcode that uses a cursor belongs to the node that moves the cursor, as SQLite's own
 * SQLITE_ENABLE_STMT_SCANSTATUS has it; any other one to the loop or step whose code it stands in.
 * The tables and indexes that are modified have nodes that are made here.
 */
#ifndef QUERYPROF_SQLITE_PLAN_MAPPING_H
#define QUERYPROF_SQLITE_PLAN_MAPPING_H

#include "sqlite/plan/plan.h"

/* Sets the nodes of the plan's opcodes. `regions`: the number of the node whose Explain came last before each
 * opcode, -1: none. False: no memory. */
bool plan_map(struct plan *plan, const int *regions);

/* Copies a text of SQLite's, which it has in memory. A line, for it becomes one. */
void plan_copy_text(char *to, size_t room, const char *from);

#endif
