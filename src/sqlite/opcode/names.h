/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a library's opcodes.
 *
 * EXPLAIN gives the names of those that bytecode has. The text that it gives is the library's own
 * constant, and the library has such texts in a table by the opcodes' numbers: it is found where it
 * has all the names that are known.
 */
#ifndef QUERYPROF_SQLITE_OPCODE_NAMES_H
#define QUERYPROF_SQLITE_OPCODE_NAMES_H

#include "sqlite/library/host.h"

#define OPCODES 256
#define OPCODE_NAME_BYTES 16

/* `known`: the library's texts by the opcodes' numbers, NULL: not met. Without the table `names`
 * gets those only; "": not known. Numbers that no opcode has may get anything. */
void opcode_names_find(char names[OPCODES][OPCODE_NAME_BYTES], const char *const known[OPCODES],
                       const struct host_library *library);

#endif
