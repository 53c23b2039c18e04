/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a statement's virtual tables are SQLite's own.
 *
 * Preparing a statement calls the modules of its virtual tables, for the best index and for
 * functions. Calls of SQLite's own modules have no effect that the host notices. A module of the host
 * or of an extension is unknown code, which may count, print, wait or query.
 */
#pragma once

#include "sqlite/opcode/locations.h"
#include "sqlite/plan/missing.h"

/* BYTECODE_READ if all virtual tables of the bytecode and of its triggers are of SQLite's own modules; else
 * why that is not so, or not known. The statement that has the opcodes lives. */
enum bytecode_counter virtual_tables_check(const struct host_library *library,
                                           const struct opcode_library *opcodes, const sqlite3 *db,
                                           const void *bytecode, uint32_t count);

/* The name of the module of the virtual table that an opcode's P4 leads to. The table was checked. */
#define VIRTUAL_MODULE_MAX 32
bool virtual_table_module(const void *p4, char name[VIRTUAL_MODULE_MAX]);
