/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of bytecode, plans and their nodes.
 */
#pragma once

#include "store/write/prepared.h"
#include "wire/bytecode_record.h"

struct writer;

struct bytecode_writer {
	struct {
		struct prepared add, add_plan, add_node, add_opcode, add_loop, add_module_loop, add_missing,
			remove_missing;
	} sql;
};

extern const struct bytecode_writer bytecode_writer_new;

/* SQLITE_OK or the error, like all functions that take a record. */
int bytecode_add(struct writer *writer, const struct bytecode_record *record);
int bytecode_add_rows(struct writer *writer, const struct bytecode_rows_record *record);

/* Removes bytecode that no query names. */
int bytecode_remove_unused(struct writer *writer);
