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
#pragma once

#include "sqlite/plan/bytecode_copy.h"
#include "sqlite/plan/nodes.h"

/* Reads the bytecode of a prepared EXPLAIN QUERY PLAN. Nothing of it is used later. False: no
 * memory, or bytecode that it calls cannot be read. */
bool plan_read(struct plan *plan, const struct opcode_library *library, const void *explained);

/* Whether the statement whose opcodes these are executes this bytecode; then the plan has its
 * opcodes. `is_patterned`: texts were explained in the place of bound values (bound_values.h). */
bool plan_match(struct plan *plan, const struct opcode_library *library, const struct bytecode_copy *live,
                bool is_patterned);

void plan_free(struct plan *plan);
