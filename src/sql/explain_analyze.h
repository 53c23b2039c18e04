/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table-valued function explain_analyze(STATEMENT): runs a statement that only reads, once, on the
 * caller's connection, and has a row for it and for each node of its plan.
 *
 *   SELECT * FROM explain_analyze('SELECT * FROM orders WHERE customer = 7');
 *
 * Loops, rows, estimates and times of nodes are those of the SQLite library that the connection belongs to.
 * They are NULL, not known, unless it counts them: 3.42 or later, built with SQLITE_ENABLE_STMT_SCANSTATUS.
 * Earlier, a program that runs lacks most nodes of its plan.
 */
#pragma once

struct session;

int explain_analyze_register(struct session *session, char **error);
