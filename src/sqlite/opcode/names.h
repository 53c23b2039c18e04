/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a library's opcodes.
 *
 * EXPLAIN returns the names of opcodes in bytecode. The returned text is the library's own constant,
 * and the library has such texts in a table by the opcodes' numbers, which is recognised by all the
 * known names.
 */
#pragma once

#include "sqlite/library/host.h"

#define OPCODES 256
#define OPCODE_NAME_BYTES 16

/* `known`: the library's texts by the opcodes' numbers, NULL: not found. Without the table,
 * `names` gets only those; "": not known. Numbers that no opcode has may get anything. */
void opcode_names_find(char names[OPCODES][OPCODE_NAME_BYTES], const char *const known[OPCODES],
                       const struct host_library *library);
