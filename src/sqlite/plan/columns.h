/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of a scanned table that its statement compares.
 *
 * The statement's own opcodes show it: a value that Column reads is compared, directly or after
 * functions and arithmetic. Column has only a number. Its name comes from SELECT * FROM the table,
 * which is prepared and never run: that bytecode must open the same b-tree, so a name is never a
 * guess.
 */
#pragma once

#include "sqlite/plan/nodes.h"

/* Fills `compared` of the first nodes that scan: "status, year; in expressions: title; index by_year (year)
 * is not searched: the comparison has the collation NOCASE". Unused indexes begin with a column that is
 * compared itself. The columns before the semicolon are compared themselves, so an index on them may be of
 * use; the others only after a function, arithmetic or a test for truth. The plan has the opcodes of the
 * statement, whose text this is; its connection may prepare now. */
void plan_columns_name(struct plan *plan, const struct opcode_library *library,
                       const sqlite3_api_routines *api, sqlite3 *db, const char *text);
