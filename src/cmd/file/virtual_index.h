/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query of a virtual table in words. EXPLAIN QUERY PLAN shows it as the table's module encodes it:
 * "VIRTUAL TABLE INDEX 32:M2". Plans are read only for modules that are part of SQLite, so the form
 * identifies the module.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Writes a node's detail. False, without output: no virtual table, or its form is not known. */
bool virtual_index_write(FILE *to, const char *detail);
