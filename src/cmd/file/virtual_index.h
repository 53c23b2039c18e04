/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query of a virtual table in words. EXPLAIN QUERY PLAN shows it as the table's module encodes it:
 * "VIRTUAL TABLE INDEX 32:M2". Among the modules that are part of SQLite, the form identifies the module.
 * A node of another module has the module's name in `compared`.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* In the detail of each node that reads a virtual table. */
#define VIRTUAL_INDEX " VIRTUAL TABLE INDEX "

/* Writes a node's detail. False, without output: no virtual table, or its form is not known. */
bool virtual_index_write(FILE *to, const char *detail);
