/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of programs, plans and their nodes.
 */
#ifndef QUERYPROF_STORE_WRITE_BYTECODE_H
#define QUERYPROF_STORE_WRITE_BYTECODE_H

#include "store/write/prepared.h"
#include "wire/bytecode_record.h"

struct writer;

struct program_writer {
	struct {
		struct prepared add, add_plan, add_node, add_opcode, add_loop, add_missing, remove_missing;
	} sql;
};

void program_writer_init(struct program_writer *programs);

/* SQLITE_OK or the error, as all that takes a record. */
int programs_add(struct writer *writer, const struct program_record *record, size_t size);
int programs_add_rows(struct writer *writer, const struct program_rows_record *record, size_t size);

/* Removes those that no query names any more. */
int programs_remove_unused(struct writer *writer);

#endif
