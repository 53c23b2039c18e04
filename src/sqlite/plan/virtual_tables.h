/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a statement's virtual tables are SQLite's own.
 *
 * Preparing a statement calls the modules of its virtual tables, for the best index and for
 * functions. Calls of SQLite's own modules have no effect that the host notices. A module of the host
 * or of an extension is unknown code, which may count, print, wait or query. So it is never called; its
 * recorded answers are used instead (module_calls.h).
 */
#pragma once

#include "base/hash.h"
#include "sqlite/opcode/locations.h"
#include "sqlite/plan/missing.h"
#include "sqlite/plan/nodes.h"
#include "sqlite/session/session.h"

/* BYTECODE_READ if the plan can be read, as far as the virtual tables of the bytecode and of its triggers
 * decide that; else why that is not so, or not known. `needs_record`: it takes the recorded answers of
 * modules; `needs_calls`: at least one. The statement that has the opcodes lives. */
enum bytecode_counter virtual_tables_check(const struct session *session,
                                           const struct opcode_library *opcodes, const void *bytecode,
                                           uint32_t count, bool *needs_record, bool *needs_calls);

/* The number that the opcode passes to a module's xFilter, of the answer to xBestIndex, if it is VFilter.
 * `at`: its number. Its text is left out, because reading that takes system calls. */
void virtual_filter_hash(struct hash *hash, const struct opcode_library *opcodes, const void *bytecode,
                         uint32_t at);

/* All numbers and texts, in the bytecode and its triggers. The statement that has the opcodes lives. */
struct hash virtual_filters_hash(const struct opcode_library *opcodes, const void *bytecode, uint32_t count);

/* The name of the module of the virtual table that an opcode's P4 leads to. The table was checked. */
#define VIRTUAL_MODULE_MAX 32
bool virtual_table_module(const void *p4, char name[VIRTUAL_MODULE_MAX]);

/* Fills `compared` of the nodes that read a table of a module that is not SQLite's own: "module vec0". The
 * plan has the opcodes of the statement, which lives. */
void virtual_modules_name(struct plan *plan, const struct host_library *library);
