/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of stacks, found or made.
 */
#pragma once

#include "base/hash_table.h"
#include "store/write/prepared.h"
#include "wire/record.h"

struct writer;

struct stack_writer {
	struct hash_table known; /* by the addresses in the process */
	char text[STACK_FRAMES_MAX * 21 + 3];
	struct {
		struct prepared find, add, touch;
	} sql;
};

extern const struct stack_writer stack_writer_new;

/* Forgets the rows that were last used before the epoch. */
void stack_writer_forget(struct stack_writer *stacks, int64_t epoch);

/* The row's number, > 0, or minus SQLite's code. */
int64_t intern_stack(struct writer *writer, const struct sample_record *sample);
