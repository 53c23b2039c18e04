/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node of its plan for which each opcode of bytecode works.
 *
 * An opcode that uses a cursor belongs to the node that moves the cursor, as in SQLite's
 * SQLITE_ENABLE_STMT_SCANSTATUS; any other one belongs to the loop or step whose code contains it.
 * The modified tables and indexes have nodes that are made here.
 */
#pragma once

#include "sqlite/plan/nodes.h"

/* Sets the nodes of the plan's opcodes. `regions`: the number of the node with the last Explain
 * before each opcode, -1: none. False: out of memory. */
bool plan_map(struct plan *plan, const int *regions);

/* Copies a text of SQLite's, which it has in memory. A line, for it becomes one. */
void plan_copy_text(char *to, size_t room, const char *from);
