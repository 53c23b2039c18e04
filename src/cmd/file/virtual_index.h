/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a virtual table was asked for, in words. EXPLAIN QUERY PLAN has it as the table's module encodes it:
 * "VIRTUAL TABLE INDEX 32:M2". Plans are only read of modules that are part of SQLite, so the form tells the
 * module.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* The detail of a node. False, and nothing is written: it is of no virtual table, or its form is not known.
 */
bool virtual_index_write(FILE *to, const char *detail);
