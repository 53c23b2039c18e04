/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of call_stacks: where the application called SQLite. Finds or makes them.
 */
#pragma once

#include "base/hash_table.h"
#include "store/write/prepared.h"

struct writer;

struct call_stack_writer {
	struct hash_table known; /* by the bytes of the record */
	struct {
		struct prepared find, add;
	} sql;
};

extern const struct call_stack_writer call_stack_writer_new;

/* The row's number, > 0, or minus SQLite's code. `bytes`: as in wire/call_frame.h. 0: there is no frame. */
int64_t intern_call_stack(struct writer *writer, const char *bytes, size_t size);
